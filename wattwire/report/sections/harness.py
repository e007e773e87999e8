"""The page's section on the cost of measuring: the harness's own CPU time, disturbance, phases."""

from __future__ import annotations

from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence
from wattwire.model.derived import column
from wattwire.model.metrics import METRICS
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "harness",
    {
        "title": "Measurement overhead",
        "costs": "Harness cost and disturbance per run",
        "unit_of_shares": "share of all cores",
        "phases": "Duration of a run's phases",
        "none": "No run recorded the harness's own cost.",
    },
)

OWN = (
    "harness_cpu_share", "steal_share", "other_load_share", "other_cpu_share",
    "schedule_late_p99_us",
)  # fmt: skip


def section(evidence: Evidence) -> Section:
    """Return the section on the cost of measuring and the duration of a run's phases."""
    part = Section("harness", PHRASES("title"))
    rows = []
    for name in OWN:
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
    return part


def _wide_table(table_id: str, title: str, rows: list[dict[str, Any]]) -> Table:
    return Table(
        table_id,
        title,
        [
            Column("what", "what"),
            Column("unit", "unit"),
            Column("median", "median run", "measured"),
            Column("highest", "highest run", "measured"),
            Column("runs", "runs", "measured"),
        ],
        rows,
    )


PART = PagePart(150, lambda data: [section(data.evidence)], measured_only=True)
