"""Learns to tell articles from other pages."""
