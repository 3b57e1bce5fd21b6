"""Output of commands: messages, tables, JSON lines, progress."""
