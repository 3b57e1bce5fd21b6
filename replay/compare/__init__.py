"""What two runs say of the same pages and sites."""
