"""Definitions of a share: the weight of a site, and, by labels of some, which sites are LLM sites."""

SITES, DOMAINS, RESULTS, RANKED_RESULTS = "sites", "domains", "results", "ranked-results"
OF_RESULTS = (RESULTS, RANKED_RESULTS)  # counted from hits: `scoring.rates.results`
OF_ROWS = (SITES, DOMAINS)  # the rows of the sites are enough
ANY_ARTICLE, EVERY_ARTICLE = "any-article", "every-article"  # are by a language model; in SITES at least half
BY_LABELS = (ANY_ARTICLE, EVERY_ARTICLE)  # only labels distinguish them
FARM = "farm"  # LLM sites that publish in mass and are monetised: `scoring.rates.farm_share`
