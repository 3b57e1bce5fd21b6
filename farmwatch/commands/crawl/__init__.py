"""Commands of the crawl."""
