"""A log in memory, for tests."""
