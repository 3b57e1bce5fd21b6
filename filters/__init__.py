"""Pages to features to verdicts: extraction, measures, duplicates, rules, and the stages that run them."""
