"""`farmwatch compare`: what two runs say of the same pages and sites, and what that does to the rate."""
