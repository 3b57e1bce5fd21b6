"""The share with its interval, its groups, its corrections and its series."""
