"""Tests of the console in Chromium; a package, so that its fixtures of this scope end with its last test."""
