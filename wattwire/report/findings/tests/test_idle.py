"""Tests of the detector of latency that decreases as the rate increases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wattwire.model.derived import FloatArray
from wattwire.report.findings import idle
from wattwire.report.findings.finding import Finding, Silence
from wattwire.report.findings.tests.made_up import FACTORS, MESSAGES, campaign, grown, narrow
from wattwire.report.tests.phrase_search import only


def awake(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies with a wake-up cost of 60 µs at 10 Hz, and a tenth of it at 1 kHz."""
    values = scale * grown(levels, 80.0) * np.exp(rng.normal(0, 0.2, MESSAGES))
    return values + 60.0 * (10.0 / float(levels["rate_hz"])) ** 0.5


def test_latency_that_falls_with_the_rate_is_found() -> None:
    evidence, runs = campaign(np.random.default_rng(5), awake, blocks=5, run_sd=0.03)
    found = idle.find(evidence, runs, {})
    assert isinstance(found, Finding)
    assert not found.shown
    assert only(found.evidence, "idle.summary").values["slow"] == "10 Hz"
    assert "idle driver made_up" in only(found.evidence, "idle.facts").values["facts"]
    assert found.settles.key == "idle.confirm"


def test_no_smaller_effect_than_two_identical_labels_is_found() -> None:
    evidence, runs = campaign(np.random.default_rng(5), awake, blocks=5, run_sd=0.03)
    assert isinstance(idle.find(evidence, runs, {"latency_p50_us": 2.0}), Silence)


def test_one_rate_and_few_blocks_are_said() -> None:
    factors = {name: levels for name, levels in FACTORS.items() if name != "rate_hz"}
    evidence, runs = campaign(np.random.default_rng(5), narrow, factors=factors)
    silent = idle.find(evidence, runs, {})
    assert isinstance(silent, Silence) and silent.words.key == "idle.one_rate"
    evidence, runs = campaign(np.random.default_rng(5), narrow, blocks=2)
    silent = idle.find(evidence, runs, {})
    assert only(silent, "idle.few_blocks").values == {"blocks": 2, "needed": 3}
