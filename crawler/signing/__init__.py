"""Signed requests (Web Bot Auth): the key, the signature of a request, and the directory of keys for sites."""
