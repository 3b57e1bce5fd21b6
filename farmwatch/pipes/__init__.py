"""The lines of the pipes."""
