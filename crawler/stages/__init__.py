"""CRAWL, what it would do, and the records of hits."""
