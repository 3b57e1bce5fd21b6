"""The embedded log: SQLite and segment files."""
