"""Which URL of which site is fetched next, and what an answer changes."""
