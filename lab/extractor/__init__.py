"""Labelled main texts: the training of the extractor `blocks`, and its errors."""
