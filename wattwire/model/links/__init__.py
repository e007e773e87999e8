"""Profiles of links between hosts."""
