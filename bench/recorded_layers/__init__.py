"""Cost of recording layers, and planted delays in them."""
