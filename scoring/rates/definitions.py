"""Definitions of a share: how much a site counts, and, by labels of some, which sites are LLM sites."""

SITES, DOMAINS, RESULTS, RANKED_RESULTS = "sites", "domains", "results", "ranked-results"
DEFINITIONS = (SITES, DOMAINS, RESULTS, RANKED_RESULTS)
ANY_ARTICLE, EVERY_ARTICLE = "any-article", "every-article"  # of a site is by a language model; in SITES at least half
BY_LABELS = (ANY_ARTICLE, EVERY_ARTICLE)  # only labels tell them apart
