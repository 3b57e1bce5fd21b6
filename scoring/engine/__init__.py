"""Reads texts with language models on a device: batches, memory, faults. Shared by the detectors that need torch."""
