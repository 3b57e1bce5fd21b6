"""Fetching: connections, DNS, address guard, politeness gate, limits."""
