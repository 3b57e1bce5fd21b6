"""Commands of known truth: labels, panels, canaries."""
