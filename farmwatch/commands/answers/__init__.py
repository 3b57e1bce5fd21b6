"""Commands that answer: the share, the sites, the pages."""
