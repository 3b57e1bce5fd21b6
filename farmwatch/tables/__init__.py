"""Lists: their columns, defined once, and how they are sorted, filtered, totalled, shown and written."""
