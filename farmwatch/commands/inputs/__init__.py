"""Commands that add hits, pages and labels."""
