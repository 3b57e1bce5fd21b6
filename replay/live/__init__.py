"""Which run is live, and the way from one to the next."""
