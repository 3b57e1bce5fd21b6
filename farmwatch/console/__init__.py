"""The console: a web page on one machine that shows the share, and why each site and page counts as it does."""
