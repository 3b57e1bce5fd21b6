"""The catalogue of runs: windows, phases, lag, retention."""
