"""Pages that are no page: challenges, walls, parked domains, soft 404s and what else is served in the place of a text."""
