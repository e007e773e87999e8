"""Import data of other authors into the store, with the provenance of each value."""

from wattwire.imports.imported import Check, Imported, Match, Remark, SetAside
from wattwire.imports.loading import FILE, Reader, find, load, readers
from wattwire.imports.writing import write

__all__ = [
    "FILE", "Check", "Remark", "Imported", "Reader", "SetAside", "Match", "find", "load",
    "readers", "write",
]  # fmt: skip
