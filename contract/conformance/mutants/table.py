"""Read each language's `mutants.toml`, and check the whole table before any build."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cell import CLAUSES, CellUnderTest
from ..repository import ROOT, read_toml
from ..suite import scenarios_for

TOP_KEYS = ("middleware", "build_flags", "quick", "without", "mutant")
KEYS = ("name", "file", "find", "replace", "clause", "scenarios")
OPTIONAL_KEYS = ("middleware",)
DEFAULT_MIDDLEWARE = "loopback"
CELL = "cell:"
"""Prefix of a file of the cell that tests the kit; all other files are the kit's."""


@dataclass(frozen=True)
class Mutant:
    """A textual substitution in a kit or cell, the clause it breaks, and the scenarios for it."""

    language: str
    name: str
    file: str
    find: str
    replace: str
    clause: str
    scenarios: tuple[str, ...]
    quick: bool
    """Whether the tests also run this mutant."""
    build_flags: tuple[str, ...]
    middleware: str = ""
    """The middleware whose cell tests this mutant; "": the middleware of the table."""

    @property
    def identity(self) -> str:
        return f"{self.language}: {self.name}"


def mutants(language: str | None = None) -> list[Mutant]:
    """Return the mutants of one language, or of all languages, from their `mutants.toml`.

    The key `quick` names the mutants that the tests run (default: all). `build_flags` are
    additional flags for a faster build.
    """
    selected = []
    for path in sorted((ROOT / "languages").glob("*/mutants.toml")):
        if language in (None, path.parent.name):
            selected += read_table(path)
    return selected


def read_table(path: Path) -> list[Mutant]:
    """Return the mutants of one table.

    Raise LookupError, with the file, the key and the wrong value, if the table is invalid.
    """
    table = read_toml(path)
    _known(path, "", "key", table, TOP_KEYS)
    middleware = str(table.get("middleware", DEFAULT_MIDDLEWARE))
    _node(path, middleware)
    entries = table.get("mutant", [])
    names = [
        str(entry.get("name", f"number {position}")) for position, entry in enumerate(entries, 1)
    ]
    _known(path, "quick", "mutant", table.get("quick", ()), names)
    _known(path, "without", "clause", table.get("without", {}), _numbered())
    for name, entry in zip(names, entries, strict=True):
        place = f'mutant "{name}": '
        node = _node(path, str(entry.get("middleware", middleware)), place)
        _check(path, place, entry, scenario_names(read_toml(node)["patterns"]), node.parent)
    quick = set(table.get("quick", names))
    flags = tuple(table.get("build_flags", ()))
    return [
        Mutant(
            path.parent.name,
            **{**entry, "scenarios": tuple(entry["scenarios"])},
            quick=entry["name"] in quick,
            build_flags=flags,
        )
        for entry in entries
    ]


def _node(path: Path, middleware: str, place: str = "") -> Path:
    """Return the manifest of a middleware's cell in the language of the table `path`."""
    node = path.parents[2] / "middleware" / middleware / path.parent.name / "node.toml"
    if not node.is_file():
        raise LookupError(
            f"{path}: {place}middleware: {middleware} has no cell in {path.parent.name} ({node} "
            "does not exist); name a middleware whose cell in this language tests the kit"
        )
    return node


def scenario_names(patterns: Collection[str]) -> list[str]:
    """Return the scenario names for a cell with these patterns, in the suite's order."""
    return [
        scenario.name
        for scenario in scenarios_for(CellUnderTest("", (), patterns=list(patterns)), [])
    ]


def _numbered() -> list[str]:
    """Return every clause of the contract.

    A table may also give a reason for a clause that the suite cannot check.
    """
    text = (Path(__file__).parents[2] / "CONTRACT.md").read_text(encoding="utf-8")
    return re.findall(r"^\*\*(C-\d\d) ", text, flags=re.MULTILINE)


def _check(
    path: Path, place: str, entry: Mapping[str, Any], scenarios: Collection[str], cell: Path
) -> None:
    """Raise LookupError for the first fault of one [[mutant]]; `cell` is the cell's folder."""
    _known(path, place.rstrip(": "), "key", entry, (*KEYS, *OPTIONAL_KEYS))
    missing = [key for key in KEYS if not isinstance(entry.get(key), (str, list))]
    if missing:
        raise LookupError(f"{path}: {place}{missing[0]}: missing; required are {_joined(KEYS)}")
    if not isinstance(entry["scenarios"], list) or not entry["scenarios"]:
        raise LookupError(
            f"{path}: {place}scenarios: found {entry['scenarios']!r}; allowed: a list of at least "
            "one scenario name"
        )
    _known(path, f"{place}scenarios", "scenario", entry["scenarios"], scenarios)
    _known(path, f"{place}clause", "clause", [entry["clause"]], CLAUSES)
    in_cell = entry["file"].startswith(CELL)
    folder = cell if in_cell else path.parent / "kit"
    name = entry["file"].removeprefix(CELL)
    if not (folder / name).is_file():
        files = [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]
        kind = f"file of the {'cell' if in_cell else 'kit'}"
        _known(path, f"{place}file", kind, [name], files)


def _known(
    path: Path, place: str, kind: str, words: Collection[str], known: Collection[str]
) -> None:
    """Raise LookupError for the first of `words` that is not in `known`, with close matches."""
    for word in words:
        if word in known:
            continue
        close = difflib.get_close_matches(str(word), list(known), n=3, cutoff=0.5)
        where = f"{path}: {place}: " if place else f"{path}: "
        allowed = f"similar: {_joined(close)}" if close else f"allowed: {_joined(known)}"
        raise LookupError(f'{where}unknown {kind} "{word}"; {allowed}')


def _joined(names: Collection[str]) -> str:
    return ", ".join(names)
