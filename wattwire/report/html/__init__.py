"""Convert sections into a self-contained page."""
