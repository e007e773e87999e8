"""Implement `new`, which writes a commented study that runs without changes."""

from __future__ import annotations

import argparse
import json
import shlex
from importlib import resources
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog
from wattwire.catalog.manifest import read_toml
from wattwire.catalog.topologies import with_topology
from wattwire.cli.topology_text import cells_for, topology_of, topology_text
from wattwire.cli.topology_text import study_text as topology_study_text
from wattwire.cli.verbs import add_verb
from wattwire.model.deployment import PLACED
from wattwire.model.errors import EXIT_OK, MissingError, UsageError
from wattwire.model.flows import parse_topology
from wattwire.model.study import parse_study
from wattwire.model.words import listed, plural
from wattwire.run.resolve_cells import prepare

TEMPLATE = "study_template.toml"
TEMPLATE_CELL = '["loopback/python"]'
CELL = "cell"
NAMED_MAX = 4
"""Maximum number of cells that the title names."""


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
    verb.add_argument(
        "--from", dest="source", metavar="PATH",
        help="a campaign of `topics` or `exec --topics`, a bag of ROS, or a topology file (.json "
        "of ros2-performance, .toml): also write its nodes and flows as a topology file",
    )  # fmt: skip
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
    if options.source is None:
        _write(path, study_text(cells))
    else:
        _write_topology(path, Path(options.source), cells)
    skipped = dict.fromkeys(_skipped(path))
    runs_unchanged = "" if skipped else "The study runs without changes, and comments"
    print(f"Wrote {path}. {runs_unchanged or 'Comments'} explain every line.")
    for reason in skipped:
        print(f"The study skips {reason}.")
    print(f"Next: wattwire plan {shlex.quote(str(path))}")
    return EXIT_OK


def _write(path: Path, text: str) -> None:
    """Write a new file. Raises MissingError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise MissingError(
            f"{path}: cannot be written ({error.strerror}); name a file in a writable folder"
        ) from error


def _write_topology(path: Path, source: Path, cells: list[str]) -> None:
    """Write the topology of a bag or of a topology file next to a study of it.

    Raises UsageError for a source that cannot be read, has a fault, or if the file exists.
    """
    stem = "" if path.name == "study.toml" else f"{path.stem}-"
    file = path.with_name(f"{stem}topology.toml")
    if file.exists() or file.is_symlink():
        raise UsageError(f"{file}: this file already exists; choose another name for the study")
    table, remarks = topology_of(source)
    parse_topology({"file": str(source), **table}, PLACED, "--from")
    cells = cells or list(cells_for(table, Catalog()))
    _write(file, topology_text(table, remarks, source))
    _write(path, topology_study_text(file.name, cells))
    nodes, flows = len(table["node"]), len(table["flow"])
    print(f"Wrote {file}: {plural(nodes, 'node')} and {plural(flows, 'flow')}.")


def _skipped(path: Path) -> list[str]:
    """Return the reason for each treatment of a new study that cannot be measured here."""
    document = with_topology(read_toml(path), path)
    study = parse_study(path.stem, document, str(path))
    try:
        return [reason for _, reason in prepare(study, Catalog(), None).skipped]
    except MissingError as error:  # none of its cells can be measured
        return [f"all treatments: {error}"]


def study_text(cells: list[str]) -> str:
    """Return the template. If `cells` is not empty, it replaces the cells of the template.

    A study of several cells asks how they differ.
    """
    template = resources.files("wattwire.cli") / TEMPLATE
    text = template.read_text(encoding="utf-8")
    if not cells:
        return text
    text = text.replace(TEMPLATE_CELL, json.dumps(cells), 1)
    if len(cells) == 1:
        return text
    names = listed(cells) if len(cells) <= NAMED_MAX else f"{len(cells)} cells"
    for old, new in (
        ("What does a bigger payload cost?", f"What do {names} cost?"),
        ("How does the payload change", "How do cell and payload change"),
        ('factors = ["payload_bytes"]', f'factors = ["{CELL}", "payload_bytes"]'),
        ('primary = "payload_bytes" #', f'primary = "{CELL}"          #'),
        (
            "baseline = {payload_bytes",
            f"baseline = {{{CELL} = {json.dumps(cells[0])}, payload_bytes",
        ),
    ):
        text = text.replace(old, new, 1)
    return text
