"""The configuration of a process, and what it opens."""
