"""A package, so that no other package of this name in the environment is imported instead."""
