"""MEASURE and JUDGE."""
