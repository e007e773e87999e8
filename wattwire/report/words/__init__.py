"""Sentences shared by the page, the terminal and papers."""
