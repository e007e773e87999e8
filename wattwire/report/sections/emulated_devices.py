"""Build the section on devices that an emulator executed, which no other section compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.offloading.emulated import DEVICE, INSTRUCTIONS
from wattwire.model.derived import column
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Band, Column, Fold, Section, Table, Text
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "emulated_devices",
    {
        "title": "Emulated devices",
        "what": (
            "An emulator on this machine executed these devices. Their round trips show the "
            "emulator and this machine, so no other section of the page contains, ranks or tests "
            "them."
        ),
        "instructions": "Instructions per block",
        "instructions_note": (
            "The emulator counted the instructions of the device; the table has the median over "
            "the runs, and the largest deviation from it. The time of a block is an estimate, not "
            "a measurement: instructions per block × cycles per instruction ÷ frequency of the "
            "clock, with the bounds of the cycles that the cell's manifest states. A device whose "
            "manifest states no clock has no estimate. No test and no ranking uses it."
        ),
        "uncounted": (
            "No run counted the instructions of the device. If the middleware has a setting that "
            "counts them, set it in the study."
        ),
        "fold": "Round trips with the emulator",
        "round_trips": "Round trips with the emulator",
        "round_trips_note": (
            "Medians over the runs of a treatment of the runs' median latency. They do not "
            "describe the device."
        ),
    },
)
LATENCY = "latency_p50_us"


def section(evidence: Evidence) -> Section | None:
    """Return the section, or None if no valid run has an emulated device."""
    if not evidence.emulated.height:
        return None
    part = Section("emulated-devices", PHRASES("title"))
    part.parts.append(Text(PHRASES("what")))
    instructions = _instructions(evidence)
    part.parts.append(instructions if instructions.rows else Text(PHRASES("uncounted"), "note"))
    part.parts.append(Fold(PHRASES("fold"), [_round_trips(evidence)]))
    return part


def _instructions(evidence: Evidence) -> Table:
    """Return the table of counted instructions by device, with the estimated time of a block."""
    rows: list[dict[str, Any]] = []
    frame = evidence.emulated
    for device in sorted(frame[DEVICE].unique().to_list()):
        of_device = frame.filter(frame[DEVICE] == device)
        counted = column(of_device, INSTRUCTIONS)
        counted = counted[np.isfinite(counted)]
        if not counted.size:
            continue
        median = float(np.median(counted))
        table = _table_of(evidence, of_device["run"].to_list(), device)
        has_clock = "clock_hz" in table
        rows.append(
            {
                "device": device,
                "runs": int(counted.size),
                "instructions": median,
                "deviation": 100 * float(np.max(np.abs(counted / median - 1.0))),
                "clock": table["clock_hz"] / 1e6 if has_clock else None,
                "time_us": _estimate_us(median, table) if has_clock else None,
            }
        )
    columns = [
        Column("device", "device"),
        Column("runs", "runs", "measured"),
        Column("instructions", "instructions per block", "measured", digits=4),
        Column("deviation", "largest deviation", "measured", "%"),
        Column("clock", "clock", "text", "MHz"),
        Column("time_us", "time per block, estimate", "estimate", "µs"),
    ]
    note = PHRASES("instructions_note")
    return Table("instructions-per-block", PHRASES("instructions"), columns, rows, note)


def _table_of(evidence: Evidence, runs: Sequence[str], device: str) -> Mapping[str, Any]:
    """Return the manifest's description of a device, from the document of a run; {} if unknown."""
    nodes = (node for run in runs for node in evidence.runs.get(run, {}).get("nodes", []))
    tables = (node.get("emulated") or {} for node in nodes)
    return next((table for table in tables if table.get("device") == device), {})


def _estimate_us(instructions: float, table: Mapping[str, Any]) -> Band:
    """Return the bounds of a block's time (µs) on the device at its clock."""
    fewest, most = table["cycles_per_instruction"]
    us_per_cycle = 1e6 / table["clock_hz"]
    return Band(instructions * fewest * us_per_cycle, instructions * most * us_per_cycle)


def _round_trips(evidence: Evidence) -> Table:
    rows: list[dict[str, Any]] = []
    for key, frame in by_treatment(evidence, evidence.emulated).items():
        latency_us = column(frame, LATENCY)
        finite_us = latency_us[np.isfinite(latency_us)]
        rows.append(
            {
                **dict(zip(evidence.varied, key, strict=True)),
                "device": frame[DEVICE][0],
                "runs": frame.height,
                "latency_us": float(np.median(finite_us)) if finite_us.size else None,
            }
        )
    columns = [
        *factor_columns(evidence),
        Column("device", "device"),
        Column("runs", "runs", "measured"),
        Column("latency_us", "median round trip", "measured", "µs"),
    ]
    note = PHRASES("round_trips_note")
    return Table("emulated-round-trips", PHRASES("round_trips"), columns, rows, note)


PART = PagePart(105, lambda data: [section(data.evidence)], measured_only=True, of_messages=True)
