"""Commands on runs: replay, compare, cutover, runs."""
