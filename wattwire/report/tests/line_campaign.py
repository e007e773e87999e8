"""Simulate a campaign with latencies on a line and on a curve, and with medians of three hops."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wattwire.report.tests.synthetic import FAST, Shape, write_campaign

CLIENTS = (1, 2, 4, 8)
HOPS = tuple(f"latency_p50_us.hop.{hop}" for hop in (1, 2, 3))
SLOPE_US, BLOCK_US = 50.0, 30.0
LINE = {"title": "Latency by clients", "kind": "line", "response": "latency_p50_us",
        "x": "clients", "by": "language"}  # fmt: skip
STACKED = {"title": "Hops", "kind": "stacked", "responses": list(HOPS), "by": "clients"}
Levels = Mapping[str, Any]


def planted(levels: Levels, block: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a latency on a line (Swift) or a curve (Python), and medians of three hops."""
    clients, fast = levels["clients"], levels["language"] == FAST
    latency_us = 100.0 + SLOPE_US * clients + BLOCK_US * block + float(rng.normal(0, 4))
    latency_us += 0.0 if fast else 400.0 + 30.0 * (clients - 4) ** 2
    hops = {name: 10.0 * place + clients for place, name in enumerate(HOPS, 1)}
    return {"latency_p50_us": latency_us, **hops}


def campaign_of(
    folder: Path,
    figures: Sequence[Mapping[str, Any]],
    change: Callable[[dict[str, Any], Levels], None] | None = None,
    blocks: int = 4,
    intervals: Sequence[float] = (0.2,),
    clients: Sequence[int] = CLIENTS,
) -> Path:
    """Write a campaign whose summaries have planted responses; `change` edits a planted row."""
    shape = Shape(
        blocks=blocks, duration_s=4.0, patterns=("service",), intervals_s=tuple(intervals),
        clients=tuple(clients), study={"figure": list(figures)},
    )  # fmt: skip
    at = write_campaign(folder / "campaign", shape)
    rng = np.random.default_rng(3)
    for path in sorted(at.glob("runs/*/summary.json")):
        row = json.loads(path.read_text())
        levels = {name: row[f"factor.{name}"] for name in ("language", "clients", "interval_s")}
        row |= planted(levels, row["block"], rng)
        if change:
            change(row, levels)
        path.write_text(json.dumps(row))
    return at
