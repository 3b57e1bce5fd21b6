"""Measures of a page's structure: its tree, metadata and URL."""
