"""Appends hits, search results and archives to the log, and shows the progress of a crawl."""
