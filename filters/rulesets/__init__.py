"""The shipped rulesets: `notes` and `default` for articles, and the published rules of four web-corpus builders."""
