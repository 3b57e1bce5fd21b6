"""The names of n-gram models. Does not import numpy."""

from __future__ import annotations

SHIPPED = "english"
"""Name of the model in the package."""
UNLIKELY = 8_000.0
"""Perplexity above which a sentence is unlikely, as published for bigrams (M. Fernández-Pichel et al. 2023)."""
