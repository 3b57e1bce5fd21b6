"""SCORE and TALLY."""
