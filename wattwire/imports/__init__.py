"""Import of others' data into the store, with the provenance of every value."""

from wattwire.imports.imported import Check, Finding, Imported, SetAside, Verdict
from wattwire.imports.loading import FILE, Reader, find, load, readers
from wattwire.imports.writing import write

__all__ = [
    "FILE", "Check", "Finding", "Imported", "Reader", "SetAside", "Verdict", "find", "load",
    "readers", "write",
]  # fmt: skip
