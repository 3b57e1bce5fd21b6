"""Runs over stored records: other rules or detectors beside the live run."""
