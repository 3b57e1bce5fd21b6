"""HTML to main text and its block table."""
