"""Commands on runs: replay, compare, cut over."""
