"""Chunks, shingles and repeats: comparison of texts."""
