"""Learned numbers that ship with farmwatch: the weights of `lite-ngram` and the numbers measured with them."""
