"""Web archives: reads and writes WARC files."""
