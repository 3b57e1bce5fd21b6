"""The quality measures of Gopher, C4, FineWeb and DOLMa. Rules on them are in filters/rules/published.py."""
