"""Check the addresses on which nodes listen (C-38)."""

from .scenarios import scenarios

__all__ = ["scenarios"]
