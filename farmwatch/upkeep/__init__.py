"""What keeps a log well: forgetting, repair, updates, disk."""
