"""What a reader of somebody's data hands over; the reader itself lives in its study's folder.

`studies/NAME/replication.py` defines `read(source: Path, recipe: str) -> Imported` and
`RECIPES: dict[str, str]`, names of recipes with what each does, the default first. It raises
UsageError where `source` holds nothing it knows.
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
"""The columns of a table of provenance."""


class Verdict(str, Enum):
    """How a value of ours compares with the one printed."""

    EXACT = "exact"
    BY_SEARCH = "exact by search"
    WITHIN_1_PERCENT = "within 1 %"
    DIFFERS = "differs"
    NOT_COMPUTABLE = "cannot be computed"


@dataclass(frozen=True)
class Check:
    """One published number beside what the data give.

    `published` is the text as printed, all its digits; `value` ours, None where there is none.
    `searched` counts the variants that were tried for "exact by search". `weak` marks a match
    that few digits make easy. `place` names table, row and column for people; its key `column`,
    where there is one, makes the page lay the numbers out as the paper's table, the other keys
    being the row's. `default_value` is what the study's default recipe gives, where it has one.
    """

    group: str
    place: Mapping[str, str]
    published: str
    value: float | None
    verdict: Verdict
    recipe: str
    searched: int = 0
    weak: bool = False
    explanation: str = ""
    default_value: float | None = None


@dataclass(frozen=True)
class SetAside:
    """A file, or rows of one, that no value comes from. `rows` is 0 for a whole file."""

    path: str
    rows: int
    why: str


@dataclass(frozen=True)
class Finding:
    """Something that the data show about themselves or about what was printed from them."""

    title: str
    text: str
    rows: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Imported:
    """A campaign that others ran.

    `runs` has one row per run with the store's columns (`run/results/columns.py`): run, attempt,
    block, position, verdict, outcome, used, control, factor.NAME, and responses by the store's
    names and units, per node as STEM.ROLE.INDEX. `columns` describes the responses that the
    store does not know: name -> {unit, kind, summary}. `reasons` says by run why its verdict is
    not ok. `provenance` has a row per run and response: run, column, files (list of paths below
    the source), rows_used, rows_left_out, how. `study` is a study's document (title, factors,
    question, answers, source, published), `machine` what the authors tell of theirs.
    """

    study: Mapping[str, Any]
    runs: pl.DataFrame
    provenance: pl.DataFrame
    set_aside: tuple[SetAside, ...]
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    findings: tuple[Finding, ...] = ()
    machine: Mapping[str, Any] = field(default_factory=dict)
