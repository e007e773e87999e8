"""Build tables that several sections of the page, or papers, share."""
