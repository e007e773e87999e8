"""Tables, verdict and summary row of a run, computed from what nodes and meters recorded."""
