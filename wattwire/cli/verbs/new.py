"""Implement `new`, which writes a commented study that runs without changes."""

from __future__ import annotations

import argparse
import json
import shlex
from importlib import resources
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog
from wattwire.cli.verbs import add_verb
from wattwire.model.errors import EXIT_OK, MissingError, UsageError

TEMPLATE = "study_template.toml"
TEMPLATE_CELL = '["loopback/python"]'


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(
        verbs,
        "new",
        description="Write a study that runs unchanged and explains each line. FILE ends in "
        ".toml, or is a folder for study.toml.",
    )
    verb.add_argument("file", metavar="FILE", help="my-study.toml, or a folder")
    verb.add_argument("cells", nargs="*", metavar="CELL", help="cells of the new study")
    verb.set_defaults(call=new)


def new(options: argparse.Namespace) -> int:
    """Write the template to a new file.

    Raises UsageError if the file exists, and MissingError if it cannot be written.
    """
    path = Path(options.file)
    if path.suffix != ".toml":
        path = path / "study.toml"
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path}: this file already exists; choose another name")
    cells = [cell.name for cell in Catalog().cells_like(options.cells)] if options.cells else []
    text = study_text(cells)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise MissingError(
            f"{path}: cannot be written ({error.strerror}); name a file in a writable folder"
        ) from error
    print(f"Wrote {path}. The study runs without changes, and comments explain every line.")
    print(f"Next: wattwire plan {shlex.quote(str(path))}")
    return EXIT_OK


def study_text(cells: list[str]) -> str:
    """Return the template. If `cells` is not empty, it replaces the cells of the template."""
    template = resources.files("wattwire.cli") / TEMPLATE
    text = template.read_text(encoding="utf-8")
    if not cells:
        return text
    return text.replace(TEMPLATE_CELL, json.dumps(cells), 1)
