"""Write SVG, PDF, LaTeX, supplements and comparisons, which are the outputs besides the page."""
