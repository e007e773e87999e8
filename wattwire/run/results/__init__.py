"""Compute the tables, the verdict and the summary row of a run from its records."""
