"""Audits the result of a run against the log."""
