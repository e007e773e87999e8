"""From what nodes and meters recorded to a run's tables, its verdict and its row of the summary."""
