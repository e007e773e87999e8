"""Value types of the hosts of a run."""
