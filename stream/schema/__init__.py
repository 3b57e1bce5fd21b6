"""Topics, records, runs and the words that stages share."""
