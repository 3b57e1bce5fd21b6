"""The catalogue of runs: rows, windows, phases, lag, retention."""
