"""Comparisons of round trips and pipelines with bare and fair peers."""
