"""Detectors that read with a pair of language models: Binoculars and Fast-DetectGPT."""
