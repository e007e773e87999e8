"""Write a small campaign whose runs have planted median latencies, for tests of comparisons."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, gather
from wattwire.model.deployment import Deployment
from wattwire.report.tests.synthetic import MACHINE
from wattwire.store import Campaign

SCATTER = 0.01
"""Relative standard deviation of the planted latencies over runs."""
FIXED = {"middleware": "loopback", "language": "cpp", "pattern": "service"}


def planted(
    folder: Path,
    document: Mapping[str, Any],
    treatments: Sequence[Mapping[str, Any]],
    latency_us: Callable[[Mapping[str, Any]], float],
    blocks: int = 5,
    skipped: Sequence[tuple[Mapping[str, Any], str]] = (),
) -> Evidence:
    """Return a campaign with a valid run of each treatment in each block.

    `document` has the factors and the requests of the study, `skipped` the treatments without runs
    and their reasons.
    """
    rng = np.random.default_rng(3)
    stored = Campaign.create(folder)
    stored.write_json(
        "study.json",
        {"name": "s", "title": "S", "fixed": FIXED, "plan": {"blocks": blocks}, **document},
    )
    stored.write_json("machine.json", MACHINE)
    plan: list[dict[str, Any]] = []
    for block in range(1, blocks + 1):
        for treatment in treatments:
            plan.append(_entry(len(plan), block, treatment, None))
            _write(stored, plan[-1], latency_us(treatment) * rng.normal(1.0, SCATTER))
    for treatment, reason in skipped:
        plan.append(_entry(len(plan), 1, treatment, reason))
    stored.write_json("plan.json", plan)
    stored.journal.write_plan((r["run"], r["block"], r["position"], "") for r in plan)
    stored.close()
    return gather(Campaign(folder))


def _entry(
    number: int, block: int, treatment: Mapping[str, Any], skipped: str | None
) -> dict[str, Any]:
    return {
        "run": f"b{block}-p{number}",
        "block": block,
        "position": number + 1,
        "treatment": dict(treatment),
        "levels": dict(treatment),
        "skipped": skipped,
    }


def _write(stored: Campaign, entry: dict[str, Any], latency_us: float) -> None:
    number = stored.journal.begin(entry["run"], "made-up", "2024-01-01T00:00:00")
    at = stored.open_attempt(entry["run"], number)
    row = {
        "run": entry["run"], "attempt": number, "block": entry["block"],
        "position": entry["position"], "verdict": "valid", "outcome": "completed", "control": "",
        "used": True, "expected": 100, "sent": 100, "lost": 0, "failed": 0,
        "latency_p50_us": latency_us,
        **{f"factor.{name}": level for name, level in entry["treatment"].items()},
    }  # fmt: skip
    (at / "summary.json").write_text(json.dumps(row))
    document = {**entry, "attempt": number, "verdict": "valid", "outcome": "completed",
                "cells": {}, "nodes": []}  # fmt: skip
    (at / "run.json").write_text(json.dumps(document))
    (at / "deployment.json").write_text(json.dumps(Deployment(()).to_json()))
    folder = stored.commit(entry["run"], number, at)
    stored.journal.finish(entry["run"], number, "valid", "completed", folder, "2024-01-01")
