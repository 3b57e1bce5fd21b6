"""The signals of a page: what pays for it, what counts its readers, and what it is built with."""
