"""The bench of extractors: the texts of many tools beside labelled main texts."""
