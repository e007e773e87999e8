"""Numbers of the flows that a study runs at the same time."""
