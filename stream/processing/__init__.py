"""The loop that runs a stage: batches, state, dead letters, metrics."""
