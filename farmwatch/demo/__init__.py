"""The parts of `farmwatch demo`: a small web on loopback with known truth, and the search results that lead into it."""
