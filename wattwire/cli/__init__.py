"""Parses, calls, prints and exits. Nobody imports this package."""
