"""Commands that show the content of the log."""
