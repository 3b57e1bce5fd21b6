"""The share as a user asks for it: now, as a series, and how it changed."""
