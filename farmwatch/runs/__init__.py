"""Runs: the same records under another ruleset or detector: planned, carried out, watched, removed; what is live."""
