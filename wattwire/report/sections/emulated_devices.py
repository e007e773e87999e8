"""Build the section on devices that an emulator executed, which no other section compares."""

from __future__ import annotations

from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.offloading.emulated import DEVICE
from wattwire.model.derived import column
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Fold, Section, Table, Text
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
    part.parts.append(Fold(PHRASES("fold"), [_round_trips(evidence)]))
    return part


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
