"""The command line: a file per command, in folders by help group."""
