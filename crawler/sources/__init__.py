"""Sources of hits: search engines by their APIs, Common Crawl, and any search that speaks JSON."""
