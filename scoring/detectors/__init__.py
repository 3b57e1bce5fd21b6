"""Loading detectors by name, and running several at once."""
