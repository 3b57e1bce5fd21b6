"""Explains why a page was kept or dropped."""
