"""Store the observed duration of a run for later forecasts (`rig/observed.py`)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wattwire.design import PlannedRun
from wattwire.model.study import Study
from wattwire.model.verdict import COMPLETE
from wattwire.rig.observed import ObservedRun, note_run
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.record import RunRecord

REACHED_SHARE = 0.95
"""Share of its scheduled messages that a sender has sent if it reached its rate."""


def note_duration(study: Study, planned: PlannedRun, record: RunRecord, elapsed_s: float) -> None:
    """Store the duration of a design run. `elapsed_s` excludes the wait for a quiet machine."""
    complete = record.outcome in COMPLETE
    if not complete or planned.control or not record.nodes:
        return
    nodes = len(record.node_processes)
    states = map(record.state_of, record.nodes)
    sent_lines = [state.lines["SENT"] for state in states if state and "SENT" in state.lines]
    calls = [int(line["sent"]) for line in sent_lines]
    window_s = (record.window["end_ns"] - record.window["start_ns"]) / SECOND_NS
    observed = observed_run(study, planned, (nodes, max(calls, default=0)), window_s, elapsed_s)
    observed = replace(observed, reached_hz=reached_hz(sent_lines))
    for cell in dict.fromkeys(node.cell for node in record.nodes):
        note_run(cell, observed, _ready(record, cell))


def reached_hz(sent_lines: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the rate (Hz) of the fastest of the senders, which sent less than was scheduled.

    `sent_lines` are the SENT lines of the senders (C-14). The result is None if a sender reached
    its rate.
    """
    rates = []
    for line in sent_lines:
        sent = int(line["sent"])
        if sent < 2 or sent >= REACHED_SHARE * int(line["scheduled"]):
            return None
        rates.append((sent - 1) * SECOND_NS / max(1, int(line["end_ns"]) - int(line["begin_ns"])))
    return max(rates, default=None)


def observed_run(
    study: Study, planned: PlannedRun, counts: tuple[int, int], window_s: float, elapsed_s: float
) -> ObservedRun:
    """Return a run's number of nodes, its seconds beyond the plan, and its seconds per call."""
    plan, treatment = study.plan, planned.treatment
    nodes, calls = counts
    closed = treatment["loop"] == "closed"
    stated_s = 2 * plan.baseline_s + plan.drain_ms(len(study.rig.hosts)) / 1000
    stated_s += window_s if closed else plan.duration_s
    call_s = window_s / calls if closed and calls else None
    return ObservedRun(nodes, max(0.0, elapsed_s - stated_s), call_s)


def _ready(record: RunRecord, cell: str) -> dict[str, Any]:
    """Return the library details that the cell's last node reported, with today's date."""
    for node in reversed(record.nodes):
        state = record.processes.states.get(node.process)
        line = state.lines.get("READY") if state and node.cell == cell else None
        if line:
            report = {key: line[key] for key in ("library", "guarantee") if line.get(key)}
            return {**report, "seen": datetime.date.today().isoformat()}
    return {}
