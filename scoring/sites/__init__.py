"""From page scores to a site verdict: the methods sprt and deciles."""
