"""Tables, verdict and summary row of a run, computed from the records of nodes and meters."""
