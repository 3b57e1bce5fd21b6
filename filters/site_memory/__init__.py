"""The earlier pages of a site, and how a page resembles them."""
