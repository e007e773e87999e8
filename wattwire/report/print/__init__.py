"""Outputs other than the page: SVG, PDF, LaTeX, supplements, comparisons for terminal and CI."""
