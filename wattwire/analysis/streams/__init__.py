"""Compute the numbers of the messages that a probe has recorded."""
