"""Kits with one planted fault each: the suite must catch every one, by its clause."""
