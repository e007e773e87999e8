"""Finding and loading the reader that a study brings for the data of its paper."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from wattwire.imports.imported import Imported
from wattwire.model.errors import UsageError, unknown

FILE = "replication.py"
PACKAGE = "wattwire_studies"


@dataclass(frozen=True)
class Reader:
    """A study's reader: `read(source, recipe)`, and its recipes with what each does."""

    study: str
    folder: Path
    recipes: Mapping[str, str]
    function: Callable[[Path, str], Imported]

    @property
    def default(self) -> str:
        """The recipe that is used where none is asked for: the first."""
        return next(iter(self.recipes))

    def read(self, source: Path, recipe: str | None = None) -> Imported:
        """Read `source` by a recipe. Raises UsageError where either is unknown or unreadable."""
        wanted = self.default if recipe is None else recipe
        if wanted not in self.recipes:
            raise unknown(f"study {self.study}", "recipe", wanted, self.recipes)
        if not source.exists():
            raise UsageError(f"{source}: nothing is there; give the folder with the authors' data")
        imported = self.function(source, wanted)
        if not isinstance(imported, Imported):
            raise UsageError(f"{self.folder / FILE}: read() gave no Imported")
        return imported


def find(name: str, roots: Sequence[Path]) -> Reader:
    """The reader of a study given by name, or by its folder.

    Raises UsageError where there is no such study, or it has no reader.
    """
    as_path = Path(name)
    if "/" in name and as_path.is_dir():
        folder = as_path
    else:
        folders = readers(roots)
        if name not in folders:
            raise unknown("import", "study with a reader", name, folders)
        folder = folders[name]
    if not (folder / FILE).is_file():
        raise UsageError(
            f"{folder}: this study has no {FILE}, so nothing here reads its paper's data; a plain "
            "table is read by `wattwire import csv FILE`"
        )
    return load(folder)


def readers(roots: Sequence[Path]) -> dict[str, Path]:
    """Folders of the studies under `roots` that bring a reader; the first root with a name wins."""
    found: dict[str, Path] = {}
    for root in roots:
        for file in sorted(root.glob(f"studies/*/{FILE}")):
            found.setdefault(file.parent.name, file.parent)
    return found


def load(folder: Path) -> Reader:
    """Load the reader in `folder`; modules beside it are there as `from . import NAME`."""
    folder = folder.resolve()
    module = _module(folder)
    where = folder / FILE
    recipes, function = getattr(module, "RECIPES", None), getattr(module, "read", None)
    if not isinstance(recipes, Mapping) or not recipes:
        raise UsageError(f"{where}: RECIPES: found {recipes!r}; allowed: name -> what it does")
    if not callable(function):
        raise UsageError(f"{where}: there is no function read(source, recipe)")
    return Reader(folder.name, folder, recipes, function)


def _module(folder: Path) -> ModuleType:
    name = f"{PACKAGE}_{re.sub(r'[^0-9A-Za-z]', '_', folder.name)}"
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(folder / FILE):
        return loaded
    for old in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[old]
    spec = importlib.util.spec_from_file_location(
        name, folder / FILE, submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise UsageError(f"{folder / FILE}: cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        told = f"{type(error).__name__}: {error}"
        raise UsageError(f"{folder / FILE}: cannot be loaded ({told})") from error
    return module
