"""Rows as they are now: the newest of each site, dead letters, scores; and what expired."""
