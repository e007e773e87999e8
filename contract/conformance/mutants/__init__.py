"""Mutants: copies of kits with one planted fault each, which the suite must catch by its clause."""
