"""Web formats: URLs, links, content types, encodings, sitemaps, files of hits."""
