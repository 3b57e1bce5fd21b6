"""Commands that run farmwatch."""
