"""Phrase the sentences that the page, the terminal and papers share."""
