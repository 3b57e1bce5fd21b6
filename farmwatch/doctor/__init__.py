"""Checks of an installation."""
