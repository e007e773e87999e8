"""Compute tables, verdict and summary row of a run from the records of nodes and meters."""
