"""The commands of `farmwatch rulesets`."""
