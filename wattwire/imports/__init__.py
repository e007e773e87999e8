"""Data that others measured, read into our store with the provenance of every value."""

from wattwire.imports.imported import Check, Finding, Imported, SetAside, Verdict

__all__ = ["Check", "Finding", "Imported", "SetAside", "Verdict"]
