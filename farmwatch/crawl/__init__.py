"""Hits, searches and archives onto the log, and the view of a crawl."""
