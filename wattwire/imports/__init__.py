"""Import data of other authors into the store, with the provenance of each value."""

from wattwire.imports.imported import Check, Imported, Match, Remark, SetAside
from wattwire.imports.loading import Reader, find, folder_of, listed_recipes, load, readers
from wattwire.imports.writing import write

__all__ = [
    "Check", "Remark", "Imported", "Reader", "SetAside", "Match", "find",
    "folder_of", "listed_recipes", "load", "readers", "write",
]  # fmt: skip
