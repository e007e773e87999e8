"""Write outputs other than the page: SVG, PDF, LaTeX, supplements and comparisons."""
