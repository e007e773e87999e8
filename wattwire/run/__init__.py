"""Execute campaigns and runs."""
