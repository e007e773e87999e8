"""Sentences that the page, the terminal and papers share."""
