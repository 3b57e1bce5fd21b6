"""Articles written by a language model for the demo's web: package data, one JSON Lines file a site."""
