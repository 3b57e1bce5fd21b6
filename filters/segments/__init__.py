"""The parts of a page, each with a kind, so that a page without a long text can be scored by what it has."""
