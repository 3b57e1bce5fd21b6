"""Copies a log to another one, and its records to files."""
