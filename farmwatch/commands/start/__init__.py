"""Commands that start farmwatch and say how it is."""
