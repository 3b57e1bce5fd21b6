"""Commands that learn and measure; single stages as pipes."""
