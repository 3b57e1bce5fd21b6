"""Chunks, shingles and repeats: what texts have in common."""
