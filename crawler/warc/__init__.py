"""Web archives: WARC files read and written."""
