"""Planning a replay and carrying it out."""
