"""The built-in detector: word n-grams and a logistic regression."""
