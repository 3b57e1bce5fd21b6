"""Topics, records, logs and the loop that runs a stage on them."""
