"""Thresholds and probabilities from labelled scores."""
