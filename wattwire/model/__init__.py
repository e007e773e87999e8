"""Define values. This package uses no campaign files, processes or network."""
