"""Training and evaluation of `lite-ngram`."""
