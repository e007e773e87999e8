"""Read the tier of each test from `tiers.toml`, which alone decides when a test runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
TABLE = "tests/tiers.toml"
TIERS = ("quick", "test", "full", "all")
MATRIX = "all"
"""The tier of tests that are marked `matrix`."""
ENTRIES: Mapping[str, str] = tomllib.loads((ROOT / TABLE).read_text(encoding="utf-8"))
"""Folder, file, test or test with parameters → tier."""


def tier_of(test: str) -> str:
    """Return the tier of a test's id, a file or a folder. Raise LookupError if no entry decides."""
    for place in containing(test):
        if place in ENTRIES:
            return ENTRIES[place]
    raise LookupError(f"{test}: no tier; add its folder to {TABLE}")


def containing(test: str) -> Iterator[str]:
    """Yield a test's id, then what contains it: `a/b.py::c[d]`, `a/b.py::c`, `a/b.py`, `a`."""
    yield test
    place, bracket, _ = test.partition("[")
    if bracket:
        yield place
    for separator in ("::", "/"):
        while separator in place:
            place = place.rpartition(separator)[0]
            yield place


def tiers_in(place: str) -> frozenset[str]:
    """Return the tiers that tests of a file or folder may have, before it is read."""
    inside = {
        tier for entry, tier in ENTRIES.items() if entry.startswith((f"{place}/", f"{place}::"))
    }
    try:
        return frozenset({*inside, tier_of(place), MATRIX})
    except LookupError:
        return frozenset(TIERS)


def selected(tier: str, after: str = "") -> frozenset[str]:
    """Return a tier and those before it, without `after` and those before that."""
    first = TIERS.index(after) + 1 if after else 0
    return frozenset(TIERS[first : TIERS.index(tier) + 1])
