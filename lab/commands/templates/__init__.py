"""Commands on the templates of sites."""
