"""Content and boilerplate of archived pages, by comparison with pages of the same site."""
