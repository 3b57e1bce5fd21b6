"""Perplexity of sentences under an n-gram model, and texts without the sentences that are too unlikely."""
