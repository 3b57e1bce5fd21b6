"""Learns how sites are told apart by their page scores."""
