"""Compares two runs over the same pages and sites."""
