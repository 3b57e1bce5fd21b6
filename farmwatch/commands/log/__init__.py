"""Commands of the log and its files."""
