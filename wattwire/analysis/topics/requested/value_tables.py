"""Compute the tables that a study requests: medians over the runs of a cell, and printed numbers.

A table has one part per value and role. Its rows are combinations of levels, and its groups of
columns are the levels of another factor.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wattwire.analysis import not_compared
from wattwire.analysis.carried import saturated
from wattwire.analysis.dataset import (
    Evidence,
    all_levels,
    has_levels,
    planned_levels,
    rows_at,
)
from wattwire.analysis.metrics_by_role import NOT_MEASURED, is_measured, of_role, values_of
from wattwire.analysis.published_values import Printed
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.model.output_requests import ShownTable, ShownValue

MULTIPLES = {1.0: "", 1e3: "thousand", 1e6: "million"}
SATURATED, SKIPPED, EXCLUDED, NO_VALUE = "saturated", "skipped", "excluded", "no value"
Levels = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """The median of a cell's runs, or None.

    `verdict` is SATURATED if at least one of the runs was, or the kind of reason why there is no
    median; a cell that the design lacks has none. `reason` is why the cell was skipped.
    """

    value: float | None = None
    verdict: str = ""
    reason: str = ""

    @property
    def is_unmeasured(self) -> bool:
        """Whether the machine did not measure the response."""
        return self.verdict == NOT_MEASURED

    @property
    def is_skipped(self) -> bool:
        """Whether the campaign skipped the cell."""
        return self.verdict == SKIPPED

    @property
    def is_excluded(self) -> bool:
        """Whether no run of the cell is valid."""
        return self.verdict == EXCLUDED


UNMEASURED = Cell(None, NOT_MEASURED)


@dataclass(frozen=True)
class PrintedCell:
    """A number and its ratio to the lowest number, as printed; None if they were not printed."""

    value: str | None
    ratio: str | None


@dataclass(frozen=True)
class ValueRow:
    """A row of a table. `levels` are titles.

    A cell and its `ratio` to the lowest median per group of columns, and a printed cell per group
    and printed column.
    """

    levels: tuple[str, ...]
    cells: tuple[Cell, ...]
    ratios: tuple[float | None, ...]
    printed: tuple[tuple[PrintedCell, ...], ...]


@dataclass(frozen=True)
class Factor:
    """A factor whose levels identify the rows."""

    name: str
    title: str


@dataclass(frozen=True)
class PrintedColumn:
    """The column of a published table. `source` is the title of the published table."""

    table: str
    source: str


@dataclass(frozen=True)
class ColumnGroup:
    """The columns of a level with this title; "" if the table has a single group.

    `printed` has only the published tables that have a number in the column.
    """

    title: str
    printed: tuple[PrintedColumn, ...]


@dataclass(frozen=True)
class ValueTable:
    """The table of a value and a role.

    `fewest_runs` and `most_runs` are those of the cells with a median; 0 if none has one. `pooled`
    has the titles of the factors whose levels share a cell. With `has_best`, our numbers have
    ratios; with `has_printed_ratio`, printed numbers have them, too.
    """

    response: str
    unit: str
    is_measured: bool
    factors: tuple[Factor, ...]
    groups: tuple[ColumnGroup, ...]
    rows: tuple[ValueRow, ...]
    fewest_runs: int
    most_runs: int
    pooled: tuple[str, ...]
    has_best: bool
    has_printed_ratio: bool

    @property
    def has_saturated(self) -> bool:
        """Whether a run of any cell with a median was saturated."""
        return any(cell.verdict == SATURATED for row in self.rows for cell in row.cells)


@dataclass(frozen=True)
class RequestedTable:
    """A requested table. `missing` has the titles of the responses that were not measured.

    `is_energy` states whether any of its responses is an energy.
    """

    title: str
    note: str
    missing: tuple[str, ...]
    is_energy: bool
    tables: tuple[ValueTable, ...]


def requested_table(evidence: Evidence, printed: Printed, spec: ShownTable) -> RequestedTable:
    """Return a table per value and role."""
    places = [
        (value, resolve(value.response, evidence.described), role)
        for value in spec.values
        for role in value.roles
    ]
    missing = [
        response.title for _, response, role in places if not is_measured(evidence, response, role)
    ]
    return RequestedTable(
        spec.title,
        spec.note,
        tuple(dict.fromkeys(missing)),
        any(response.energy for _, response, _ in places),
        tuple(
            _table(evidence, printed, spec, value, response, role)
            for value, response, role in places
        ),
    )


@dataclass(frozen=True)
class _Column:
    """A group of columns, before the published tables without a number are omitted."""

    title: str
    cells: tuple[Cell, ...]
    ratios: tuple[float | None, ...]
    printed: dict[str, tuple[PrintedCell, ...]]
    counts: tuple[int, ...]


def _table(
    evidence: Evidence,
    printed: Printed,
    spec: ShownTable,
    value: ShownValue,
    response: Response,
    role: str,
) -> ValueTable:
    combinations = _combinations(evidence, printed, spec)
    columns = _columns(evidence, printed, spec, value, response, role, combinations)
    filled = [
        [name for name, cells in column.printed.items() if any(cell.value for cell in cells)]
        for column in columns
    ]
    rows = tuple(
        ValueRow(
            tuple(evidence.title(factor, level) for factor, level in levels.items()),
            tuple(column.cells[place] for column in columns),
            tuple(column.ratios[place] for column in columns),
            tuple(
                tuple(column.printed[name][place] for name in names)
                for column, names in zip(columns, filled, strict=True)
            ),
        )
        for place, levels in enumerate(combinations)
    )
    groups = tuple(
        ColumnGroup(
            column.title, tuple(PrintedColumn(name, printed.source(name)) for name in names)
        )
        for column, names in zip(columns, filled, strict=True)
    )
    counts = [count for column in columns for count in column.counts]
    shown, was_measured = {*spec.rows, spec.columns}, is_measured(evidence, response, role)
    return ValueTable(
        of_role(response, role),
        value.unit or _unit(response, value.divide_by),
        was_measured,
        tuple(Factor(name, words.factor_title(name)) for name in spec.rows),
        groups,
        rows,
        min(counts, default=0),
        max(counts, default=0),
        tuple(words.factor_title(name) for name in evidence.varied if name not in shown),
        spec.best and was_measured,
        bool(value.ratio),
    )


def _columns(
    evidence: Evidence,
    printed: Printed,
    spec: ShownTable,
    value: ShownValue,
    response: Response,
    role: str,
    combinations: Sequence[Levels],
) -> list[_Column]:
    """Return a group of columns per level of the factor `columns`, with a cell per combination."""
    was_measured = is_measured(evidence, response, role)
    is_left_out = not_compared.left_out(evidence, evidence.usable, response)
    is_void = not_compared.void_not_left_out(evidence, evidence.usable, response)
    values = values_of(evidence, evidence.usable, response, role) / value.divide_by
    tables = [name for name in spec.published if _is_printed(printed, name, role, value)]
    columns = []
    for level in planned_levels(evidence, spec.columns) if spec.columns else (None,):
        in_column = {spec.columns: level} if spec.columns else {}
        cells, in_ratios, counts = [], [], []
        for row_levels in combinations:
            levels = row_levels | in_column
            is_here = rows_at(evidence.usable, levels) & ~is_left_out
            known = values[is_here & np.isfinite(values)]
            counts += [known.size] if known.size else []
            cell = _cell(evidence, levels, is_here, known) if was_measured else UNMEASURED
            cells.append(cell)
            in_ratios.append(None if (is_here & is_void).any() else cell.value)
        printed_cells = {
            name: tuple(
                PrintedCell(
                    printed.text(name, row_levels | in_column, role, value.published),
                    printed.text(name, row_levels | in_column, role, value.ratio),
                )
                for row_levels in combinations
            )
            for name in tables
        }
        title = evidence.title(spec.columns, level) if spec.columns else ""
        columns.append(
            _Column(title, tuple(cells), _ratios(in_ratios), printed_cells, tuple(counts))
        )
    return columns


def _cell(
    evidence: Evidence, levels: Levels, is_here: npt.NDArray[np.bool_], known: FloatArray
) -> Cell:
    """Return the cell of these levels.

    `is_here` states which valid runs belong to it, shape (runs,), and `known` has their values.
    """
    if not known.size:
        return _missing(evidence, levels, has_runs=bool(is_here.any()))
    is_saturated = saturated(evidence.usable.filter(is_here)).any()
    return Cell(float(np.median(known)), SATURATED if is_saturated else "")


def _missing(evidence: Evidence, levels: Levels, has_runs: bool) -> Cell:
    """Return a cell with the reason for a missing number, or none if the design lacks the cell."""
    for entry in evidence.skipped:
        if has_levels(all_levels(entry), levels):
            return Cell(None, SKIPPED, str(entry["skipped"]))
    if has_runs:
        return Cell(None, NO_VALUE)
    is_designed = any(has_levels(all_levels(entry), levels) for entry in evidence.designed)
    return Cell(None, EXCLUDED if is_designed else "")


def _ratios(medians: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the ratio of each median of a column to its lowest positive median."""
    positive = [median for median in medians if median is not None and median > 0]
    return tuple(
        median / min(positive) if median is not None and positive else None for median in medians
    )


def _is_printed(printed: Printed, table: str, role: str, value: ShownValue) -> bool:
    """Return whether the published table contains this value for the role."""
    return any(row.get(value.published) for row in printed.of(table, {}, role))


def _combinations(evidence: Evidence, printed: Printed, spec: ShownTable) -> list[Levels]:
    """Return the combinations of the levels of `rows` that the design or the publication has."""
    designed = [all_levels(entry) for entry in (*evidence.designed, *evidence.skipped)]
    every = itertools.product(*(planned_levels(evidence, factor) for factor in spec.rows))
    combinations = [dict(zip(spec.rows, levels, strict=True)) for levels in every]
    return [
        levels
        for levels in combinations
        if any(has_levels(present, levels) for present in designed)
        or any(printed.of(name, levels) for name in spec.published)
    ]


def _unit(response: Response, divide_by: float) -> str:
    multiple = MULTIPLES.get(divide_by, f"{divide_by:g}")
    return " ".join(filter(None, (multiple, response.unit)))
