"""Rules, rulesets, and the judgement of a page by them."""
