"""Pages of known truth: their file, their rounds, and the verdicts on them."""
