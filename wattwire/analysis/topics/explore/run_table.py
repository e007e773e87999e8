"""Hold the runs of a campaign in columns, for charts that a reader composes on the page."""

from __future__ import annotations

from dataclasses import dataclass

from wattwire.analysis.responses import Response


@dataclass(frozen=True)
class Layout:
    """The factors on colour (or rows), axis and panels. None means that no factor is used."""

    tone: str
    across: str | None
    panel: str | None


@dataclass(frozen=True)
class TableLevel:
    """A level as in the table, and its title."""

    level: str
    title: str


@dataclass(frozen=True)
class TableFactor:
    """A varied factor with the levels that have runs."""

    name: str
    title: str
    levels: tuple[TableLevel, ...]


@dataclass(frozen=True)
class RunTable:
    """Runs in planned order, without control runs.

    The columns `run`, `block`, `order`, `used` and `treatment` have an entry per run: its name, its
    block, its position in the plan (0 if unknown), "valid" or "excluded", and the title of its
    treatment. `levels` has a column for each of `factors`, and `values` one for each of
    `responses`, in their unit; unknown and infinite values are None. `layout` is the one that
    charts have first. `excluded` runs of the campaign are not valid.
    """

    factors: tuple[TableFactor, ...]
    responses: tuple[Response, ...]
    layout: Layout
    excluded: int
    run: tuple[str, ...]
    block: tuple[int | None, ...]
    order: tuple[int, ...]
    used: tuple[str, ...]
    treatment: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    values: tuple[tuple[float | None, ...], ...]
