"""The dates of a page: when it was published and modified, as it says itself."""
