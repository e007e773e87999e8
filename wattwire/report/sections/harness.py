"""Build the section on the CPU time, disturbance and phase durations of the harness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.metrics import HARNESS, METRICS, metrics_in
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.words.phrases import Phrases
from wattwire.stats import Interval

PHRASES = Phrases(
    "harness",
    {
        "title": "Measurement overhead",
        "costs": "Harness cost and disturbance per run",
        "unit_of_shares": "share of all cores",
        "phases": "Duration of a run's phases",
        "round_trips": "Harness cost per round trip: a cell's kit compared with a bare client",
        "round_trips_note": (
            "Before the campaign, round trips of the cell and of a bare client of the same library "
            "were measured in interleaved pairs of runs ({bytes} B, on one core of this machine). "
            "The latencies of the campaign include the cost that this comparison shows."
        ),
        "not_measured": (
            "The harness cost per round trip was not measured here{which}. Use “wattwire "
            "check CELL --cost” to measure it for cells with a bare client."
        ),
        "strangers": (
            "The server of {cell} is slower for clients of other cells: {latencies} µs (median "
            "round trip), and {own} µs for its own client, which this campaign measures. A user "
            "whose client comes from another library will see the longer time{tuned}."
        ),
        "strangers_tuned": "; with {tuned} it is {latency} µs",
        "none": "No run recorded the cost of the harness.",
    },
)


def section(evidence: Evidence) -> Section:
    """Return the section on measurement overhead and the durations of a run's phases."""
    part = Section("harness", PHRASES("title"))
    rows = []
    for name in metrics_in(HARNESS):
        metric = METRICS[name]
        values = column(evidence.usable, name)
        values = values[np.isfinite(values)]
        if values.size:
            rows.append(
                {
                    "what": metric.words,
                    "unit": metric.unit or PHRASES("unit_of_shares"),
                    "median": float(np.median(values)),
                    "highest": float(values.max()),
                    "runs": int(values.size),
                }
            )
    phases: dict[str, list[float]] = {}
    for run in evidence.runs.values():
        for phase, seconds in (run.get("seconds") or {}).items():
            if isinstance(seconds, (int, float)):
                phases.setdefault(phase, []).append(float(seconds))
    if rows:
        part.parts.append(_wide_table("harness-cost", PHRASES("costs"), rows))
    if phases:
        part.parts.append(
            Table(
                "phases",
                PHRASES("phases"),
                [
                    Column("phase", "phase"),
                    Column("median", "median", "measured", "s"),
                    Column("highest", "longest", "measured", "s"),
                    Column("total", "all runs", "measured", "s"),
                ],
                [
                    {
                        "phase": phase.replace("_", " "),
                        "median": float(np.median(s)),
                        "highest": max(s),
                        "total": sum(s),
                    }
                    for phase, s in phases.items()
                ],
            )
        )
    if not part.parts:
        part.parts.append(Text(PHRASES("none"), "warning"))
    part.parts += round_trip_costs(evidence.reader.machine)
    part.parts += slow_for_strangers(evidence.reader.machine)
    part.parts += remarks_of_cells(evidence.reader.machine)
    return part


def remarks_of_cells(machine: Mapping[str, Any]) -> list[Text]:
    """Return the remarks that the manifests of the campaign's cells contain."""
    remarks = machine.get("remarks") or {}
    return [Text(f"{cell}: {remark}") for cell, remark in sorted(remarks.items())]


def slow_for_strangers(machine: Mapping[str, Any]) -> list[Text]:
    """Return a warning for each cell whose server is much slower for clients of other cells."""
    warnings = []
    for cell, document in sorted((machine.get("stranger_calls") or {}).items()):
        slower_us, tuned_us = document["slower_us"], document["tuned_us"]
        if not slower_us:
            continue
        tuned = ""
        if tuned_us is not None:
            latency = words.number(tuned_us)
            tuned = PHRASES("strangers_tuned", tuned=document["tuned"], latency=latency)
        latencies = ", ".join(f"{name} {words.number(us)}" for name, us in slower_us.items())
        own = words.number(document["own_us"])
        warnings.append(
            Text(
                PHRASES("strangers", cell=cell, latencies=latencies, own=own, tuned=tuned),
                "warning",
            )
        )
    return warnings


def round_trip_costs(machine: Mapping[str, Any]) -> list[Table | Text]:
    """Return the table and text on the round-trip cost of kits by cell.

    The text names cells without a result. The result is empty for campaigns without cells.
    """
    costs = machine.get("harness_costs")
    if not isinstance(costs, Mapping) or not costs:
        return []
    measured = {cell: cost for cell, cost in sorted(costs.items()) if cost is not None}
    others = sorted(set(costs) - set(measured))
    parts: list[Table | Text] = []
    if measured:
        rows = [
            {
                "cell": cell,
                "added": Interval(
                    cost["added_us"], cost["added_us_low"], cost["added_us_high"], 0.95,
                    cost["pairs"], "mean difference of pairs", cost["pairs"] - 1,
                ),
                "bare": cost["bare_us"],
                "pairs": cost["pairs"],
                "day": cost["day"],
            }
            for cell, cost in measured.items()
        ]  # fmt: skip
        columns = [
            Column("cell", "cell"),
            Column("added", "kit's additional time", "measured", "µs"),
            Column("bare", "bare client, median round trip", "measured", "µs"),
            Column("pairs", "pairs", "measured"),
            Column("day", "measured on"),
        ]
        sizes = ", ".join(sorted({f"{cost['payload_bytes']}" for cost in measured.values()}))
        note = PHRASES("round_trips_note", bytes=sizes)
        parts.append(Table("harness-round-trips", PHRASES("round_trips"), columns, rows, note))
    if others:
        which = f" for {', '.join(others)}" if measured else ""
        parts.append(Text(PHRASES("not_measured", which=which), "note"))
    return parts


def _wide_table(table_id: str, title: str, rows: list[dict[str, Any]]) -> Table:
    return Table(
        table_id,
        title,
        [
            Column("what", "quantity"),
            Column("unit", "unit"),
            Column("median", "median run", "measured"),
            Column("highest", "highest run", "measured"),
            Column("runs", "runs", "measured"),
        ],
        rows,
    )


PART = PagePart(150, lambda data: [section(data.evidence)], measured_only=True)
