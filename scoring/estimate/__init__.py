"""The mathematics of shares: mixtures, intervals, clusters, reviews. It knows no rows."""
