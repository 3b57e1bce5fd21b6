"""Dashboards, recording rules and alerts as tables; `python -m dashboards` writes the files that are committed."""
