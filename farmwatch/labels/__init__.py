"""Labels by people: files of them, and the terminal that asks."""
