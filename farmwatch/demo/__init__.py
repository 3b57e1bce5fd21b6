"""`farmwatch demo`: a small web on loopback with known truth, and search results that lead to it."""
