"""N-gram models: trained on a corpus, calibrated on labelled pages, and used to clean files."""
