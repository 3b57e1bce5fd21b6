"""farmwatch."""
