"""Correlations of a question's responses with other quantities."""
