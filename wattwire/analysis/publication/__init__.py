"""Decide what a publication claims with the runs of a campaign."""
