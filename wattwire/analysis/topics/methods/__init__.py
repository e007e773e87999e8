"""Methods section of a paper; `bundle` prints it, and no page."""
