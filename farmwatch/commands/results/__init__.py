"""Commands that show what the log holds."""
