"""Define the result of a study's data reader, which is in the study's folder.

`studies/NAME/replication.py` defines `read(source: Path, recipe: str) -> Imported` and `RECIPES:
dict[str, str]`, the names of the recipes with descriptions, the default first. `read` raises
UsageError if it cannot read any data in `source`.
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
    """One published number, with the value computed from the data.

    `published` is the printed text with all its digits. `value` is the computed value, or None.
    `searched` is the number of variants that were tried for "exact by search". `weak` marks a match
    that is likely by chance because the number has few digits. `place` contains the table, row and
    column for readers. With a key `column`, the page arranges the numbers like the paper's table,
    and the other keys name the row. `default_value` is the value by the study's default recipe, if
    there is one.
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
    """An excluded file, or excluded rows of a file; `rows` is 0 for a whole file."""

    path: str
    rows: int
    why: str


@dataclass(frozen=True)
class Remark:
    """A remark on the data, or on the numbers published from the data.

    A remark `at_top` qualifies every answer, so it is also in the first lines of the page.
    """

    title: str
    text: str
    rows: tuple[Mapping[str, Any], ...] = ()
    at_top: bool = False


@dataclass(frozen=True)
class Imported:
    """A campaign that other authors measured.

    `runs` has one row per run with the columns of the store (`run/results/schema.py`): run,
    attempt, block, position, verdict, outcome, used, control, factor.NAME, and responses with the
    store's names and units, per node as STEM.ROLE.INDEX. `columns` describes responses that the
    store does not define: name -> {unit, kind, summary}, and optionally title, had and direction
    (the better direction, "lower", "higher", or "" if it is unknown). `reasons` maps runs to the
    reason why they are not valid. `provenance` has a row per run and response: run, column, files
    (list of paths below the source), rows_used, rows_left_out, how. `study` is the document of a
    study (title,
    factors, question, answers, source, published). `machine` is the authors' description of their
    machine.
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
