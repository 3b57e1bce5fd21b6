"""The result of a run, proved from the log."""
