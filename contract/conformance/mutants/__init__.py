"""Copies of kits and cells with one planted fault each, which the suite must detect."""
