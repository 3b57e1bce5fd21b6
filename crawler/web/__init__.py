"""What crosses the web: URLs, links, content types, encodings, sitemaps, files of hits."""
