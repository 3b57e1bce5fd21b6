"""Commands that check."""
