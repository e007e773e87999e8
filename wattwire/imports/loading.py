"""Find and load a study's reader for the data of its paper."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from wattwire.imports.imported import Imported
from wattwire.model.errors import UsageError, unknown
from wattwire.model.publication import READER_FILE

PACKAGE = "wattwire_studies"


@dataclass(frozen=True)
class Reader:
    """A study's reader: `read(source, recipe)`, and its recipes with their descriptions."""

    study: str
    folder: Path
    recipes: Mapping[str, str]
    function: Callable[[Path, str], Imported]

    @property
    def default(self) -> str:
        """Return the name of the default recipe, which is the first."""
        return next(iter(self.recipes))

    def read(self, source: Path, recipe: str | None = None) -> Imported:
        """Read `source` with a recipe.

        Raise UsageError if the recipe is unknown or the source does not exist.
        """
        recipe_name = self.default if recipe is None else recipe
        if recipe_name not in self.recipes:
            raise unknown(f"study {self.study}", "recipe", recipe_name, self.recipes)
        if not source.exists():
            raise UsageError(
                f"{source}: this folder does not exist; name the folder with the authors' data"
            )
        imported = self.function(source, recipe_name)
        if not isinstance(imported, Imported):
            raise UsageError(f"{self.folder / READER_FILE}: read() must return an Imported object")
        return imported


def find(name: str, roots: Sequence[Path]) -> Reader:
    """Load the reader of a study, which executes its file; see `folder_of`."""
    return load(folder_of(name, roots))


def folder_of(name: str, roots: Sequence[Path]) -> Path:
    """Return the folder of a study with a reader, given by its name or its folder.

    Raise UsageError if the study does not exist or has no reader.
    """
    as_path = Path(name)
    if "/" in name and as_path.is_dir():
        folder = as_path
    else:
        folders = readers(roots)
        if name not in folders:
            raise unknown("import", "study with a reader", name, folders)
        folder = folders[name]
    if not (folder / READER_FILE).is_file():
        raise UsageError(
            f"{folder}: this study has no {READER_FILE}, so the data of its paper cannot be read; "
            "`wattwire import csv FILE` reads a plain table"
        )
    return folder


def listed_recipes(folder: Path) -> dict[str, str]:
    """Return the recipes of the reader in `folder` without executing it.

    The result is empty if RECIPES is not a dict of texts in the file.
    """
    try:
        tree = ast.parse((folder / READER_FILE).read_text("utf-8"))
        values = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and node.value is not None
            and [ast.unparse(t) for t in _targets(node)] == ["RECIPES"]
        ]
    except (OSError, ValueError, SyntaxError, TypeError, RecursionError):
        return {}
    recipes = values[-1] if values else {}
    return {str(k): str(v) for k, v in recipes.items()} if isinstance(recipes, dict) else {}


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def readers(roots: Sequence[Path]) -> dict[str, Path]:
    """Return the folders of the studies under `roots` that have a reader, by name.

    If several roots have the same name, the first root takes precedence.
    """
    folders: dict[str, Path] = {}
    for root in roots:
        for file in sorted(root.glob(f"studies/*/{READER_FILE}")):
            folders.setdefault(file.parent.name, file.parent)
    return folders


def load(folder: Path) -> Reader:
    """Load the reader in `folder`, which may use `from . import NAME` for the folder's modules."""
    folder = folder.resolve()
    module = _module(folder)
    path = folder / READER_FILE
    recipes, function = getattr(module, "RECIPES", None), getattr(module, "read", None)
    if not isinstance(recipes, Mapping) or not recipes:
        raise UsageError(
            f"{path}: RECIPES: found {recipes!r}; allowed: a dict of names and descriptions"
        )
    if not callable(function):
        raise UsageError(f"{path}: the function read(source, recipe) is missing")
    return Reader(folder.name, folder, recipes, function)


def _module(folder: Path) -> ModuleType:
    name = f"{PACKAGE}_{re.sub(r'[^0-9A-Za-z]', '_', folder.name)}"
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(folder / READER_FILE):
        return loaded
    for stale in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[stale]
    spec = importlib.util.spec_from_file_location(
        name, folder / READER_FILE, submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise UsageError(f"{folder / READER_FILE}: cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{folder / READER_FILE}: cannot be loaded ({reason})") from error
    return module
