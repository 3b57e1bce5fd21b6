"""Labels by people: their files, and the terminal for labelling."""
