"""Check members, which are processes with several publishers and subscribers (C-41, C-42)."""

from .scenarios import scenarios

__all__ = ["scenarios"]
