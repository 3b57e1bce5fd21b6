"""Sets of queries that ship with farmwatch: a CSV file each, by the name that `search --queries` takes."""
