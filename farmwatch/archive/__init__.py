"""Carries a log to another one, and its records into files."""
