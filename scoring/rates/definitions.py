"""What a share may be of: each site counts once, or each registrable domain, article or search result of its sites."""

SITES, DOMAINS, ARTICLES, RESULTS = "sites", "domains", "articles", "results"
DEFINITIONS = (SITES, DOMAINS, ARTICLES, RESULTS)
