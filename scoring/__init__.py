"""Articles to scores to site verdicts to the rate."""
