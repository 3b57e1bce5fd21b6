"""Proportions, the logistic function, rounding."""
