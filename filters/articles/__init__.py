"""The article classifier: an additive model over measures of a page."""
