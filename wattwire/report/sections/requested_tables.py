"""Build the section of requested tables and figures, with published numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
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
from wattwire.analysis.published_values import Printed, printed_of
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.output_requests import Shown, ShownTable, ShownValue
from wattwire.report.figures import requested_figures
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Marked, Section, Table, Text
from wattwire.report.topic_page import Placed
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "requested_tables",
    {
        "title": "Tables and figures of the study",
        "none": "No tables or figures yet: no run is valid.",
        "no_file": (
            "The study's file of published numbers, {file}, is not in this campaign's folder. "
            "Copy the file there to compare published and measured numbers."
        ),
        "what": (
            "The published numbers are shown as printed{source}, including errors. They come from "
            "other machines, versions and instruments, so the comparison is descriptive, without "
            "tests. Our numbers are medians over the runs of a cell. “{best}”: the ratio to the "
            "lowest value of the column. The published ratios are as printed in the paper."
        ),
        "source": " (doi {source})",
        "best": "× best",
        "missing": "{responses:capital}: {reason}.{cpu_time}",
        "cpu_time": " The CPU time below was measured, but it is not energy.",
        "not_measured": "not measured",
        # A table.
        "table": "{response:capital}{unit}",
        "unit": " ({unit})",
        "note": "The values measured here are medians of {runs} per cell{pooled}.{saturated}",
        "saturated": (
            " “saturated”: the load was above the capacity in at least one run of the cell, so a "
            "mean latency depends on the length of the run."
        ),
        "above_capacity": "saturated",
        "skipped": "skipped",
        "excluded": "excluded",
        "not_valid": "no run of the cell is valid",
        "no_value": "no value",
        "none_arrived": "no message of the cell's runs gave this response",
        "runs": "{runs:plural run}",
        "several_runs": "{fewest} to {most:plural run}",
        "pooled": ", pooled over {factors:listed}",
    },
)

BEST = PHRASES("best")
MULTIPLES = {1.0: "", 1e3: "thousand", 1e6: "million"}
Levels = dict[str, Any]


def shown_of(evidence: Evidence) -> Shown:
    """Return the tables, figures and rankings that the study requests."""
    return evidence.study.shown


def section(evidence: Evidence, joining: Sequence[Placed] = ()) -> Section | None:
    """Return the section with the requested tables and figures.

    The parts of topics that join the section, such as rankings, are at its end. The result is None
    if the study requests nothing.
    """
    shown = shown_of(evidence)
    if not (shown.tables or shown.figures or shown.rankings or shown.break_evens):
        return None
    part = Section("requested-tables", PHRASES("title"))
    if evidence.usable.height == 0:
        part.parts.append(Text(PHRASES("none"), "warning"))
        return part
    printed = printed_of(evidence)
    if shown.published:
        part.parts.append(Text(_about(evidence, bool(printed.rows)), "note"))
    for number, spec in enumerate(shown.tables, 1):
        part.parts.append(Text(spec.title, "question"))
        part.parts += _tables(evidence, printed, spec, number)
    for number, drawing in enumerate(shown.figures, 1):
        part.parts += requested_figures.figure(evidence, drawing, number)
    part.parts += [joining_part for _, joining_part in joining]
    return part


def _about(evidence: Evidence, has_printed: bool) -> Phrase:
    if not has_printed:
        name = evidence.study.published
        return PHRASES("no_file", file=name)
    source = evidence.study.source
    source_words = PHRASES("source", source=source) if source else ""
    return PHRASES("what", source=source_words, best=BEST)


def _tables(
    evidence: Evidence, printed: Printed, spec: ShownTable, number: int
) -> list[Text | Table]:
    """Return a table per value and role, preceded by a warning about unmeasured responses."""
    contents: list[Text | Table] = [Text(spec.note)] if spec.note else []
    places = [(value, role) for value in spec.values for role in value.roles]
    missing = [
        resolve(value.response, evidence.described).title
        for value, role in places
        if not is_measured(evidence, resolve(value.response, evidence.described), role)
    ]
    if missing:
        titles = words.listed(list(dict.fromkeys(missing)))
        has_energy = any(resolve(value.response, evidence.described).energy for value, _ in places)
        contents.append(
            Text(
                PHRASES(
                    "missing",
                    responses=titles,
                    reason=NOT_MEASURED,
                    cpu_time=PHRASES("cpu_time") if has_energy else "",
                ),
                "warning",
            )
        )
    for table_number, (value, role) in enumerate(places, 1):
        contents.append(
            _table(evidence, printed, spec, value, role, f"laid-out-{number}-{table_number}")
        )
    return contents


def _table(
    evidence: Evidence,
    printed: Printed,
    spec: ShownTable,
    value: ShownValue,
    role: str,
    key: str,
) -> Table:
    response = resolve(value.response, evidence.described)
    was_measured = is_measured(evidence, response, role)
    column_levels = planned_levels(evidence, spec.columns) if spec.columns else (None,)
    combinations = _combinations(evidence, printed, spec)
    rows: list[Levels] = [
        {factor: evidence.title(factor, level) for factor, level in levels.items()}
        for levels in combinations
    ]
    is_left_out = not_compared.left_out(evidence, evidence.usable, response)
    is_void = not_compared.void_not_left_out(evidence, evidence.usable, response)
    values = values_of(evidence, evidence.usable, response, role) / value.divide_by
    published_tables = [name for name in spec.published if _is_printed(printed, name, role, value)]
    columns = [Column(name, words.factor_title(name), factor=name) for name in spec.rows]
    counts, is_saturated = [], False
    for place, level in enumerate(column_levels):
        group = evidence.title(spec.columns, level) if spec.columns else ""
        medians, in_ratios = [], []
        for row, row_levels in zip(rows, combinations, strict=True):
            levels = row_levels | ({spec.columns: level} if spec.columns else {})
            is_here = rows_at(evidence.usable, levels) & ~is_left_out
            cell_values = values[is_here & np.isfinite(values)]
            counts += [cell_values.size] if cell_values.size else []
            medians.append(float(np.median(cell_values)) if cell_values.size else None)
            in_ratios.append(None if (is_here & is_void).any() else medians[-1])
            for name in published_tables:
                row[f"{place} {name}"] = printed.text(name, levels, role, value.published)
                row[f"{place} {name} ratio"] = printed.text(name, levels, role, value.ratio)
            cell = _cell(evidence, levels, is_here, medians[-1], was_measured)
            is_saturated |= isinstance(cell, Marked) and bool(cell.mark)
            row[f"{place} here"] = cell
        _put_ratios(rows, place, in_ratios, was_measured)
        # A table of a paper rarely has every column, and empty columns would hide the others.
        filled = [name for name in published_tables if any(row[f"{place} {name}"] for row in rows)]
        columns += _columns(spec, value, printed, filled, place, group, was_measured)
    unit = PHRASES("unit", unit=value.unit) if value.unit else _unit(response, value.divide_by)
    title = PHRASES("table", response=of_role(response, role), unit=unit)
    return Table(key, title, columns, rows, _note(evidence, spec, counts, is_saturated))


def _columns(
    spec: ShownTable,
    value: ShownValue,
    printed: Printed,
    published_tables: Sequence[str],
    place: int,
    group: str,
    was_measured: bool,
) -> list[Column]:
    columns = [Column(f"{place} here", "here", "measured", group=group)]
    if spec.best and was_measured:
        columns.append(Column(f"{place} best", BEST, "measured", group=group))
    for name in published_tables:
        columns.append(Column(f"{place} {name}", printed.source(name), "published", group=group))
        if value.ratio:
            columns.append(Column(f"{place} {name} ratio", BEST, "published", group=group))
    return columns


def _cell(
    evidence: Evidence,
    levels: Levels,
    is_here: npt.NDArray[np.bool_],
    median: float | None,
    was_measured: bool,
) -> float | Marked | None:
    """Return the median of a cell, with a mark if a run was saturated, or the reason for none.

    `is_here` states which valid runs belong to the cell, shape (runs,).
    """
    if not was_measured:
        return Marked(None, PHRASES("not_measured"), "", NOT_MEASURED, NOT_MEASURED)
    if median is None:
        return _missing(evidence, levels, has_runs=bool(is_here.any()))
    if saturated(evidence.usable.filter(is_here)).any():
        mark = PHRASES("above_capacity")
        return Marked(median, words.number(median), mark, mark, PHRASES("saturated"))
    return median


def _missing(evidence: Evidence, levels: Levels, has_runs: bool) -> Marked | None:
    """Return the reason for a cell without a number; None if the design has no such cell."""
    for entry in evidence.skipped:
        if has_levels(all_levels(entry), levels):
            return Marked(None, PHRASES("skipped"), "", "skipped", str(entry["skipped"]))
    if has_runs:
        return Marked(None, PHRASES("no_value"), "", "no value", PHRASES("none_arrived"))
    if any(has_levels(all_levels(entry), levels) for entry in evidence.designed):
        return Marked(None, PHRASES("excluded"), "", "excluded", PHRASES("not_valid"))
    return None


def _put_ratios(
    rows: list[Levels], place: int, medians: Sequence[float | None], was_measured: bool
) -> None:
    """Add to each row the ratio of a column's median to its lowest positive median."""
    positive = [median for median in medians if median is not None and median > 0]
    for row, median in zip(rows, medians, strict=True):
        if was_measured and median is not None and positive:
            row[f"{place} best"] = median / min(positive)


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
    unit = " ".join(filter(None, (multiple, response.unit)))
    return PHRASES("unit", unit=unit) if unit else ""


def _note(evidence: Evidence, spec: ShownTable, counts: Sequence[int], is_saturated: bool) -> str:
    if not counts:
        return ""
    shown = {*spec.rows, spec.columns}
    pooled = [words.factor_title(name) for name in evidence.varied if name not in shown]
    runs = (
        PHRASES("runs", runs=max(counts))
        if min(counts) == max(counts)
        else PHRASES("several_runs", fewest=min(counts), most=max(counts))
    )
    return PHRASES(
        "note",
        runs=runs,
        pooled=PHRASES("pooled", factors=pooled) if pooled else "",
        saturated=PHRASES("saturated") if is_saturated else "",
    )


PART = PagePart(40, lambda data: [section(data.evidence, data.joining("requested-tables"))])
