"""Tables that several parts of the page, or papers, have."""
