"""A package of its own, so that no other of this name in the environment is imported in its place."""
