"""A log and keyed state that end with the process: for tests and trials."""
