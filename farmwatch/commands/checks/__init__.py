"""Commands that check the installation, the log and a site's robots.txt."""
