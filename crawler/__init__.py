"""Search results to pages: hits, the frontier, politeness, robots.txt, fetching, web archives."""
