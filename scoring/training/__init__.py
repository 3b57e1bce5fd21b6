"""Training and evaluation of `lite-ngram` and of article classifiers."""
