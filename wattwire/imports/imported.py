"""Define the result of a study's data reader, which is in the study's folder.

`studies/NAME/replication.py` defines `read(source: Path, recipe: str) -> Imported` and `RECIPES:
dict[str, str]`, recipes' names with their descriptions, the default first. It raises UsageError if
`source` has no data that it can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import polars as pl

PROVENANCE: dict[str, pl.DataType] = {
    "run": pl.String(),
    "column": pl.String(),
    "files": pl.List(pl.String()),
    "rows_used": pl.Int64(),
    "rows_left_out": pl.Int64(),
    "how": pl.String(),
}
"""Columns of a table of provenance."""


class Match(str, Enum):
    """Agreement of a computed value with the published value."""

    EXACT = "exact"
    BY_SEARCH = "exact by search"
    WITHIN_1_PERCENT = "within 1 %"
    DIFFERS = "differs"
    NOT_COMPUTABLE = "cannot be computed"


@dataclass(frozen=True)
class Check:
    """One published number and the value computed from the data.

    `published` is the text as printed, with all its digits; `value` the computed one, None if there
    is none. `searched` counts the variants that were tried for "exact by search". `weak` marks a
    match that is likely by chance because the number has few digits. `place` names table, row and
    column for readers; with a key `column` the page arranges the numbers as the paper's table, and
    the other keys name the row. `default_value` is the value by the study's default recipe, if it
    has one.
    """

    group: str
    place: Mapping[str, str]
    published: str
    value: float | None
    match: Match
    recipe: str
    searched: int = 0
    weak: bool = False
    explanation: str = ""
    default_value: float | None = None


@dataclass(frozen=True)
class SetAside:
    """An excluded file, or excluded rows of a file. `rows` is 0 for a whole file."""

    path: str
    rows: int
    why: str


@dataclass(frozen=True)
class Remark:
    """An observation about the data, or about the numbers published from them."""

    title: str
    text: str
    rows: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Imported:
    """A campaign that others measured.

    `runs` has one row per run with the store's columns (`run/results/columns.py`): run, attempt,
    block, position, verdict, outcome, used, control, factor.NAME, and responses by the store's
    names and units, per node as STEM.ROLE.INDEX. `columns` describes the responses that the
    store does not know: name -> {unit, kind, summary}. `reasons` says by run why its verdict is
    not ok. `provenance` has a row per run and response: run, column, files (list of paths below
    the source), rows_used, rows_left_out, how. `study` is a study's document (title, factors,
    question, answers, source, published), `machine` the authors' description of their machine.
    """

    study: Mapping[str, Any]
    runs: pl.DataFrame
    provenance: pl.DataFrame
    set_aside: tuple[SetAside, ...]
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    remarks: tuple[Remark, ...] = ()
    machine: Mapping[str, Any] = field(default_factory=dict)
