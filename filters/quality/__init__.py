"""The quality measures of Gopher, C4, FineWeb and DOLMa."""
