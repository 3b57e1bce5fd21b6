"""The shipped rulesets: `notes`, exactly the users' notes, and `default`, the same rules on blocks merged into runs."""
