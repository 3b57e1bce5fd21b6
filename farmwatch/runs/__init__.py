"""Words for runs: what a replay, a comparison and the live run have to say, from values of `replay`."""
