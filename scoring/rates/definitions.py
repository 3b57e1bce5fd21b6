"""Definitions of a share: how much a site counts, and, by labels of some, which sites are LLM sites."""

SITES, DOMAINS, ARTICLES, RESULTS, RANKED_RESULTS = "sites", "domains", "articles", "results", "ranked-results"
DEFINITIONS = (SITES, DOMAINS, ARTICLES, RESULTS, RANKED_RESULTS)
ANY_ARTICLE, EVERY_ARTICLE = "any-article", "every-article"  # of a site is by a language model; in SITES at least half
BY_LABELS = (SITES, ANY_ARTICLE, EVERY_ARTICLE)
