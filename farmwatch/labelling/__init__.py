"""Judgements by people on a sample of pages: the sample, the labels file, and the terminal that asks for them."""
