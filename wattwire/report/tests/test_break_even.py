"""Test the break-even of a simulated campaign, and what a study may request."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.offloading.break_even import break_evens
from wattwire.analysis.responses import resolve
from wattwire.model.errors import UsageError
from wattwire.model.output_requests import parse_shown
from wattwire.report.tables import break_even
from wattwire.report.tests.phrase_search import only, phrases_in
from wattwire.report.tests.synthetic import MACHINE
from wattwire.stats import Interval
from wattwire.stats.break_even import NeverUpTo
from wattwire.store import Campaign

SPEC = {
    "title": "When does it pay?", "response": "latency_p50_us", "size": "payload_bytes",
    "frame": 40, "unit": 16, "unit_title": "blocks", "work": "reply", "idle": "echo",
    "busy": "encrypt", "by": "variant", "workers": ["slow", "fast"],
}  # fmt: skip
SIZES = (56, 200, 1640, 16040)
PER_BLOCK_US = {"slow": 2.0, "fast": 0.5}
FIXED_US, PER_BYTE_US = {"slow": 40.0, "fast": 40.0, "tcp": 300.0}, 0.001


def campaign(folder: Path, blocks: int = 5, extra: float = 0.0) -> Evidence:
    """Return a campaign of two workers and one other carrier; `extra` is work that echoes lack."""
    rng = np.random.default_rng(3)
    stored = Campaign.create(folder)
    factors = {"variant": ["slow", "fast", "tcp"], "payload_bytes": list(SIZES),
               "reply": ["echo", "encrypt"]}  # fmt: skip
    document = {
        "name": "s", "title": "S", "factors": factors,
        "fixed": {"middleware": "loopback", "language": "cpp", "pattern": "service"},
        "variants": {name: {} for name in factors["variant"]},
        "plan": {"blocks": blocks, "primary": "variant"}, "break_even": [SPEC],
    }  # fmt: skip
    stored.write_json("study.json", document)
    stored.write_json("machine.json", MACHINE)
    plan = []
    for block in range(1, blocks + 1):
        for variant in factors["variant"]:
            for size in SIZES:
                for reply in ("echo", "encrypt") if variant in PER_BLOCK_US else ("echo",):
                    run = f"b{block}-p{len(plan)}"
                    treatment = {"variant": variant, "payload_bytes": size, "reply": reply}
                    entry = {"run": run, "block": block, "position": len(plan) + 1}
                    plan.append(
                        {**entry, "treatment": treatment, "levels": treatment, "skipped": None}
                    )
                    latency_us = FIXED_US[variant] + PER_BYTE_US * size
                    if reply == "encrypt":
                        latency_us += PER_BLOCK_US[variant] * (size - 40) / 16 + extra
                    _write(stored, plan[-1], latency_us * rng.normal(1.0, 0.01))
    stored.write_json("plan.json", plan)
    stored.journal.write_plan((r["run"], r["block"], r["position"], "") for r in plan)
    stored.close()
    return gather(Campaign(folder))


def _write(stored: Campaign, entry: dict, latency_us: float) -> None:
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
    folder = stored.commit(entry["run"], number, at)
    stored.journal.finish(entry["run"], number, "valid", "completed", folder, "2024-01-01")


def true_break_even(carrier: str) -> float:
    """Return k of FIXED + PER_BYTE · (40 + 16 k) + 0.5 k = 2 k."""
    saved = PER_BLOCK_US["slow"] - PER_BLOCK_US["fast"] - 16 * PER_BYTE_US
    return (FIXED_US[carrier] + 40 * PER_BYTE_US) / saved


def test_each_carrier_has_the_break_even_of_the_faster_worker_and_the_slower_never_pays(tmp_path):
    evidence = campaign(tmp_path / "c")
    (spec,) = evidence.study.shown.break_evens
    results = break_evens(evidence, spec, resolve(spec.response))
    assert [worker.level for worker in results.workers] == ["slow", "fast"]
    assert all(worker.is_additive for worker in results.workers)
    for worker in results.workers:
        assert np.mean(list(worker.per_unit.values())) == pytest.approx(
            PER_BLOCK_US[worker.level], rel=0.05
        )
    result_by_pair = {(o.carrier, o.worker): o.result for o in results.offloads}
    assert set(result_by_pair) == {(c, w) for c in FIXED_US for w in PER_BLOCK_US}
    for carrier in FIXED_US:
        interval = result_by_pair[carrier, "fast"]
        assert isinstance(interval, Interval)
        assert interval.estimate == pytest.approx(true_break_even(carrier), rel=0.05)
        assert interval.high / interval.low < 1.5
        assert result_by_pair[carrier, "slow"] == NeverUpTo((SIZES[-1] - 40) / 16, 5)


def test_the_page_separates_workers_that_never_pay_and_says_how_many_blocks_an_interval_needs(
    tmp_path,
):
    evidence = campaign(tmp_path / "c", blocks=2)
    (spec,) = evidence.study.shown.break_evens
    parts = break_even.parts(evidence, spec, 1)
    assert len(phrases_in(parts, "break_even.additive")) == 2
    tables = {part.id: part for part in parts if hasattr(part, "rows")}
    rows = tables["break-even-1"].rows
    assert {(row["carrier"], row["worker"], row["own"]) for row in rows} == {
        (carrier, "fast", "slow") for carrier in FIXED_US
    }
    assert all(row["result"].key == "break_even.without" for row in rows)
    assert len(phrases_in(parts, "break_even.never")) == 3


def test_round_trips_that_are_not_additive_are_named(tmp_path):
    evidence = campaign(tmp_path / "c", extra=200.0)
    (spec,) = evidence.study.shown.break_evens
    parts = break_even.parts(evidence, spec, 1)
    named = phrases_in(parts, "break_even.not_additive")
    assert len(named) == 2 and all(phrase.values["error"] > 0.15 for phrase in named)


def test_without_two_measured_workers_the_page_gives_the_reason(tmp_path):
    evidence = campaign(tmp_path / "c", blocks=1)
    (spec,) = evidence.study.shown.break_evens
    alone = evidence.usable.filter(evidence.usable["factor.variant"] != "fast")
    evidence.usable = alone
    parts = break_even.parts(evidence, spec, 1)
    assert only(parts, "break_even.no_worker").values["workers"] == ["slow", "fast"]


KNOWN = {"variant": ("slow", "fast"), "payload_bytes": (56, 72), "reply": ("echo", "encrypt")}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": "reply"}, 'size: found "reply"; allowed: a factor whose levels are numbers'),
        ({"unit": 0}, "unit: found 0; allowed: a number above 0"),
        ({"busy": "encrpt"}, 'busy: unknown level of reply "encrpt".*Did you mean "encrypt"'),
        ({"workers": ["slow", "fats"]}, 'workers: unknown level of variant "fats"'),
        ({"workers": ["slow"]}, "workers: found .*allowed: two or more levels"),
        ({"busy": "echo"}, "busy: found 'echo'; allowed: another level than idle"),
        ({"by": "cell"}, 'by: unknown factor "cell"'),
        ({"frame": math.nan}, "frame: found nan"),
    ],
)
def test_a_bad_request_names_the_key_the_value_and_what_is_allowed(change, message):
    with pytest.raises(UsageError, match=f"break_even 1: {message}"):
        parse_shown({"break_even": [{**SPEC, **change}]}, KNOWN, "study.toml")
