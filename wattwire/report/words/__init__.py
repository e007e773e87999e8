"""Sentences that page, terminal and papers share."""
