"""Build charts as Vega-Lite specs. The page draws them, and `print/` writes SVG and PDF files."""
