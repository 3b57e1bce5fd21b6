"""The frontier: which URL of which site is fetched next, and the effect of each result."""
