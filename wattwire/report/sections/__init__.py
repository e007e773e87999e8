"""Build the page's sections. Each file has the name of its section's anchor."""
