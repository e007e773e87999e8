"""What a paper's section on methods states; `bundle` prints it, and no page."""
