"""`mutants.toml` of a language: read and checked whole, before anything is built for it."""

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
DEFAULT_MIDDLEWARE = "loopback"


@dataclass(frozen=True)
class Mutant:
    """One textual substitution in a kit, the clause it breaks, and the scenarios that see it."""

    language: str
    name: str
    file: str
    find: str
    replace: str
    clause: str
    scenarios: tuple[str, ...]
    quick: bool
    """Run by the tests, too."""
    build_flags: tuple[str, ...]

    @property
    def identity(self) -> str:
        return f"{self.language}: {self.name}"


def mutants(language: str | None = None) -> list[Mutant]:
    """The planted faults, from `mutants.toml` of each language.

    Its key `quick` names those that the tests run (absent: all), `build_flags` what is added to
    the build, to make it fast.
    """
    found = []
    for path in sorted((ROOT / "languages").glob("*/mutants.toml")):
        if language in (None, path.parent.name):
            found += read_table(path)
    return found


def read_table(path: Path) -> list[Mutant]:
    """The mutants of one table. Raises LookupError naming file, key and what was found."""
    table = read_toml(path)
    _known(path, "", "key", table, TOP_KEYS)
    middleware = str(table.get("middleware", DEFAULT_MIDDLEWARE))
    node = path.parents[2] / "middleware" / middleware / path.parent.name / "node.toml"
    if not node.is_file():
        raise LookupError(
            f"{path}: middleware: {middleware} has no cell in {path.parent.name} ({node} is not "
            "there); name one whose cell in this language proves the kit"
        )
    scenarios = scenario_names(read_toml(node)["patterns"])
    entries = table.get("mutant", [])
    names = [str(entry.get("name", f"number {at}")) for at, entry in enumerate(entries, 1)]
    _known(path, "quick", "mutant", table.get("quick", ()), names)
    _known(path, "without", "clause", table.get("without", {}), _numbered())
    for name, entry in zip(names, entries, strict=True):
        _check(path, f'mutant "{name}": ', entry, scenarios)
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


def scenario_names(patterns: Collection[str]) -> list[str]:
    """The suite's scenarios for a cell of these patterns, in the suite's order."""
    return [one.name for one in scenarios_for(CellUnderTest("", (), patterns=list(patterns)), [])]


def _numbered() -> list[str]:
    """Every clause of the contract: also what no suite can see may have its reason in a table."""
    text = (Path(__file__).parents[2] / "CONTRACT.md").read_text(encoding="utf-8")
    return re.findall(r"^\*\*(C-\d\d) ", text, flags=re.MULTILINE)


def _check(path: Path, place: str, entry: Mapping[str, Any], scenarios: Collection[str]) -> None:
    _known(path, place.rstrip(": "), "key", entry, KEYS)
    lacking = [key for key in KEYS if not isinstance(entry.get(key), (str, list))]
    if lacking:
        raise LookupError(f"{path}: {place}{lacking[0]}: missing; each mutant has {_told(KEYS)}")
    if not isinstance(entry["scenarios"], list) or not entry["scenarios"]:
        raise LookupError(
            f"{path}: {place}scenarios: found {entry['scenarios']!r}; allowed: a list of one or "
            "more names of scenarios"
        )
    _known(path, f"{place}scenarios", "scenario", entry["scenarios"], scenarios)
    _known(path, f"{place}clause", "clause", [entry["clause"]], CLAUSES)
    if not (path.parent / "kit" / entry["file"]).is_file():
        kit = path.parent / "kit"
        files = [str(one.relative_to(kit)) for one in kit.rglob("*") if one.is_file()]
        _known(path, f"{place}file", "file of the kit", [entry["file"]], files)


def _known(
    path: Path, place: str, kind: str, words: Collection[str], known: Collection[str]
) -> None:
    """Raise LookupError for the first of `words` that is not among `known`, with close ones."""
    for word in words:
        if word in known:
            continue
        close = difflib.get_close_matches(str(word), list(known), n=3, cutoff=0.5)
        where = f"{path}: {place}: " if place else f"{path}: "
        allowed = f"close to it: {_told(close)}" if close else f"allowed: {_told(known)}"
        raise LookupError(f'{where}there is no {kind} "{word}"; {allowed}')


def _told(names: Collection[str]) -> str:
    return ", ".join(names)
