"""Write a small campaign whose runs have planted median latencies, for tests of comparisons."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

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


def planted_responses(
    folder: Path, values: Mapping[str, Mapping[str, float]], best_of: bool = False
) -> Evidence:
    """Return a campaign of languages with these values per response, with 1 % scatter.

    Values of 0 and shares of lost messages do not scatter. The median latency is 10 µs for the
    first language, and 30 µs for the others. With `best_of`, the languages are alternatives.
    """
    languages = list(next(iter(values.values())))
    responses = ["latency_p50_us", *values]
    document: dict[str, Any] = {
        "factors": {"language": languages},
        "answers": {"best_of": ["language"]} if best_of else {},
        "question": [{"id": "Q", "text": "?", "factors": ["language"], "responses": responses}],
    }
    evidence = planted(
        folder,
        document,
        [{"language": language} for language in languages],
        lambda treatment: 10.0 if treatment["language"] == languages[0] else 30.0,
    )
    rng = np.random.default_rng(5)
    frame = evidence.usable
    for name, by_language in values.items():
        scatter = 0.0 if name == "loss_share" else SCATTER
        column = [
            by_language[language[0] if isinstance(language, list) else language]
            * rng.normal(1.0, scatter)
            for language in frame["factor.language"].to_list()
        ]
        frame = frame.with_columns(pl.Series(name, column))
    evidence.usable = frame
    return evidence


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
