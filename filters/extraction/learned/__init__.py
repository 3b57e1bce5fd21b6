"""The extractor `blocks`: a classifier of text blocks, learned from labelled pages."""
