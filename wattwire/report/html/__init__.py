"""Conversion of sections into one self-contained page."""
