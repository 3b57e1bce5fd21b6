"""Runs over stored records: other rules or detectors, next to the live run."""
