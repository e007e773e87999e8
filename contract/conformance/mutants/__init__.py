"""Copies of kits with one planted fault each, which the suite must detect by its clause."""
