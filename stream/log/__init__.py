"""The contract of the log: topics, groups, transactions, errors."""
