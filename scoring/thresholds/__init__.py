"""Threshold sets and where they are published."""
