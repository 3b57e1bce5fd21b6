"""Commands of search results."""
