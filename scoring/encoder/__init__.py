"""The detector that reads with a trained sequence classifier."""
