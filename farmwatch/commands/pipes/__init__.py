"""Commands that read and write JSON lines."""
