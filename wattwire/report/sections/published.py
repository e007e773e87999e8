"""Build the section that compares the paper's tables with the campaign's values."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.dataset import Evidence, all_levels, rows_at, same_level, window_seconds
from wattwire.model import words
from wattwire.model.derived import FloatArray, column, mean_of, members
from wattwire.model.errors import UsageError
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.tables.published_values import published_file
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats import Band

PHRASES = Phrases(
    "published",
    {
        "title": "Comparison with published numbers",
        "no_file": (
            "The study's file of published numbers, {file}, is not in this campaign's folder. "
            "Copy the file there to compare published and measured numbers."
        ),
        "what": (
            "The published numbers are shown as printed{source}. They come from a different "
            "machine, a different instrument and a window of different length, so the comparison "
            "is descriptive, without tests. Our CPU values are in per cent of one core, for one "
            "node of the role. Our windows last {windows}."
        ),
        "energy": "Energy grows with the length of the window, but power does not.",
        "source": " (doi {source})",
        "no_window": "an unknown time (no valid run)",
        "unknown_window": "an unknown time",
        "windows": "{shortest:duration} to {longest:duration}",
        "window": "{length:duration}",
        # A table of the paper.
        "where": "Table {name}",
        "table": "{where}{role}{constants}",
        "role": ": {role}",
        "constants": " ({levels})",
        "note": "With three or more runs, each measured value has a 95 % t interval over runs.",
        "note_of_nodes": (
            "With three or more runs, each measured value has a 95 % t interval over runs. The "
            "value is the mean over all nodes of the role; “each node” lists the nodes separately."
        ),
        # Reasons why a published row has no measured counterpart.
        "no_role": "no {role} in these runs",
        "not_planned": "not in this campaign's plan",
        "not_run": "planned, not run yet",
        "excluded": "excluded: {reasons}",
        "no_reason": "no reason recorded",
    },
)

LABELS = ("table", "node_role", "source", "platform")
QUANTITIES = {
    "cpu_percent": ("CPU", "%"),
    "memory_kib": ("memory", "KiB"),
    "power_w": ("power", "W"),
    "energy_j": ("energy", "J"),
    "energy_ratio": ("energy over the best's", ""),
    "time_s": ("time", "s"),
    "time_ratio": ("time over the best's", ""),
    "energy_total_j": ("total energy", "J"),
    "memory_max_thousand_kib": ("largest memory", "thousand KiB"),
    "faults_minor_thousand": ("minor page faults", "thousands"),
    "switches_voluntary_thousand": ("voluntary context switches", "thousands"),
}
ENERGIES = ("power_w", "energy_j")
MEASURED = ("cpu_percent", "memory_kib", "power_w", "energy_j")
"""Quantities that our runs also measure. Other quantities have only published values."""


def section(evidence: Evidence) -> Section | None:
    """Return the section that compares published and measured numbers.

    The result is None if the study has no published numbers, or if requested tables show them all.
    Raises UsageError if their file has no rows.
    """
    study = evidence.study
    if not study.published:
        return None
    part = Section("published", PHRASES("title"))
    path = published_file(evidence)
    if path is None:
        part.parts.append(Text(PHRASES("no_file", file=study.published), "warning"))
        return part
    with path.open(newline="", encoding="utf-8") as file:
        published = list(csv.DictReader(file))
    if not published:
        raise UsageError(f"{path}: the file has no rows; restore it from the study's folder")
    published = [row for row in published if row.get("table", "") not in study.shown.published]
    if not published:
        return None
    source = study.source
    what = PHRASES(
        "what",
        source=PHRASES("source", source=source) if source else "",
        windows=_windows(evidence),
    )
    has_energy = np.isfinite(column(evidence.usable, "energy_message_j")).any() or any(
        row.get(key) for row in published for key in ENERGIES
    )
    part.parts.append(Text(joined([what, PHRASES("energy")]) if has_energy else what))
    names = dict.fromkeys((row.get("table", ""), row.get("node_role", "")) for row in published)
    for name, role in names:
        rows = [
            row
            for row in published
            if (row.get("table", ""), row.get("node_role", "")) == (name, role)
        ]
        part.parts.append(_table(evidence, name, role, rows))
    return part


def _windows(evidence: Evidence) -> Phrase:
    if evidence.usable.height == 0:
        return PHRASES("no_window")
    windows_s = window_seconds(evidence, evidence.usable)
    lengths_s = windows_s[np.isfinite(windows_s)]
    if not lengths_s.size:
        return PHRASES("unknown_window")
    shortest_s, longest_s = float(lengths_s.min()), float(lengths_s.max())
    if words.duration(shortest_s) == words.duration(longest_s):
        return PHRASES("window", length=longest_s)
    return PHRASES("windows", shortest=shortest_s, longest=longest_s)


def _table(evidence: Evidence, name: str, role: str, rows: Sequence[dict[str, str]]) -> Table:
    keys = [key for key in rows[0] if key not in LABELS and key not in QUANTITIES]
    constant = {key: rows[0][key] for key in keys if len({row[key] for row in rows}) == 1}
    quantities = [key for key in QUANTITIES if any(row.get(key) for row in rows)]
    has_several_nodes = len(_members(evidence.usable, "cpu_share", role, 1.0)) > 1
    table_rows = [_row(evidence, role, row, keys, quantities) for row in rows]
    measured_energy = bool(_members(evidence.usable, "energy_j", role, 1.0))
    columns = [
        Column(
            key,
            words.factor_title(key),
            unit=words.FACTOR_UNITS.get(key, ""),
            labels=dict(evidence.titles.get(key, {})),
        )
        for key in keys
    ]
    columns.append(Column("runs", "runs", "measured"))
    if any("because" in row for row in table_rows):
        columns.append(Column("because", "reason not measured"))
    for key in quantities:
        title, unit = QUANTITIES[key]
        estimated = key in ENERGIES and not measured_energy
        group = f"{title} ({unit})" if unit else title
        columns.append(Column(f"{key}_published", "published", "published", group=group))
        if key not in MEASURED:
            continue
        kind = "estimate" if estimated else "measured"
        columns.append(Column(f"{key}_here", f"{kind} here", kind, group=group))
        if has_several_nodes and not estimated:
            columns.append(Column(f"{key}_each", "each node", "text", group=group))
    where = str(rows[0].get("source") or PHRASES("where", name=name))
    return Table(
        f"published-{name}-{role}".replace("_", "-"),
        PHRASES(
            "table",
            where=where,
            role=PHRASES("role", role=role.replace("_", " ")) if role else "",
            constants=_constants(constant),
        ),
        [column for column in columns if column.key not in constant],
        table_rows,
        PHRASES("note_of_nodes") if has_several_nodes else PHRASES("note"),
    )


def _constants(constant: Mapping[str, str]) -> str:
    # A column that is empty belongs to other tables of the same file.
    levels = [f"{words.factor_title(key)} {value}" for key, value in constant.items() if value]
    return PHRASES("constants", levels=", ".join(levels)) if levels else ""


def _row(
    evidence: Evidence,
    role: str,
    row: Mapping[str, str],
    keys: Sequence[str],
    quantities: Sequence[str],
) -> dict[str, Any]:
    levels = {key: row[key] for key in keys}
    cells: dict[str, Any] = dict(levels)
    for key in quantities:
        cells[f"{key}_published"] = row.get(key) or None  # as printed in the paper
    frame = _matching(evidence.usable, levels)
    cells["runs"] = frame.height
    if frame.height == 0:
        cells["because"] = why_absent(evidence, levels)
        return cells
    windows_s = window_seconds(evidence, frame)
    shares = _members(frame, "cpu_share", role, 100.0)
    memories = _members(frame, "memory_kib", role, 1.0)
    _put_cells(cells, "cpu_percent", shares)
    _put_cells(cells, "memory_kib", memories)
    joules = _members(frame, "energy_j", role, 1.0)
    if joules:
        _put_cells(cells, "energy_j", joules)
        _put_cells(cells, "power_w", [values / windows_s for values in joules])
    else:
        low = mean_of(frame, members(frame, "energy_estimate_low_j", role))
        high = mean_of(frame, members(frame, "energy_estimate_high_j", role))
        cells["energy_j_here"] = Band.of_means(low, high)
        cells["power_w_here"] = Band.of_means(low / windows_s, high / windows_s)
    if not shares and not memories and set(quantities) & set(MEASURED):
        cells["because"] = PHRASES("no_role", role=role)
    return cells


def _put_cells(cells: dict[str, Any], key: str, nodes: Sequence[FloatArray]) -> None:
    """Add to `cells` the interval of the runs' mean over nodes, and the mean of each node."""
    if not nodes:
        return
    stack = np.stack(nodes)
    known = np.isfinite(stack)
    per_run = np.where(known, stack, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    per_run = per_run[known.any(axis=0)]
    if per_run.size:
        cells[f"{key}_here"] = stats.mean_interval(per_run)
    cells[f"{key}_each"] = " · ".join(
        words.number(float(np.mean(row[np.isfinite(row)])))
        for row in stack
        if np.isfinite(row).any()
    )


def _members(frame: pl.DataFrame, prefix: str, role: str, scale: float) -> list[FloatArray]:
    arrays = [column(frame, name) * scale for name in members(frame, prefix, role)]
    return [values for values in arrays if np.isfinite(values).any()]


def _matching(frame: pl.DataFrame, levels: Mapping[str, str]) -> pl.DataFrame:
    if frame.height == 0:
        return frame
    return frame.filter(pl.Series(rows_at(frame, levels)))


def why_absent(evidence: Evidence, wanted: Mapping[str, str]) -> str:
    """Return the reason why a published row has no measured counterpart."""
    matches = [
        entry
        for entry in evidence.plan
        if not entry.get("control")
        and all(same_level(all_levels(entry).get(k), v) for k, v in wanted.items())
    ]
    if not matches:
        return PHRASES("not_planned")
    reasons = dict.fromkeys(str(entry["skipped"]) for entry in matches if entry.get("skipped"))
    if reasons:
        return "; ".join(reasons)
    tried = {entry["run"] for entry in matches} & set(evidence.runs)
    if not tried:
        return PHRASES("not_run")
    codes = dict.fromkeys(
        str(reason.get("detail") or reason["code"])
        for run in sorted(tried)
        for reason in evidence.runs[run].get("reasons", [])
    )
    return PHRASES("excluded", reasons="; ".join(codes) or PHRASES("no_reason"))


PART = PagePart(120, lambda data: [section(data.evidence)], measured_only=True)
