"""Outputs beside the page: SVG, PDF, LaTeX, supplements, comparisons for terminal and CI."""
