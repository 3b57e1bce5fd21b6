"""The live run, and the change from one live run to the next."""
