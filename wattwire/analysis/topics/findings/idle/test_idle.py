"""Tests of the detector of latency that decreases as the rate increases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wattwire.analysis.topics.findings.idle.numbers import (
    FallingGroup,
    Idle,
    RateFalls,
    idle,
)
from wattwire.analysis.topics.findings.tests.made_up import (
    FACTORS,
    MESSAGES,
    campaign,
    grown,
    narrow,
)
from wattwire.model.derived import FloatArray
from wattwire.report.parts import Column, Table, Text
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats import Interval

REASON = Sentences("findings/idle").reason


def awake(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies with a wake-up cost of 60 µs at 10 Hz, and a tenth of it at 1 kHz."""
    values = scale * grown(levels, 80.0) * np.exp(rng.normal(0, 0.2, MESSAGES))
    return values + 60.0 * (10.0 / float(levels["rate_hz"])) ** 0.5


def test_latency_that_falls_with_the_rate_is_found() -> None:
    (falls,) = idle(campaign(np.random.default_rng(5), awake, blocks=5, run_sd=0.03)).found
    assert not falls.is_shown
    assert (falls.slow, falls.fast) == ("10 Hz", "1000 Hz")
    assert falls.factors == ("language", "payload_bytes")
    assert 1.1 < falls.ratio_min <= falls.ratio_max
    assert falls.runs == 10 * len(falls.rows)
    assert all(row.medians_us[0] > row.medians_us[-1] for row in falls.rows)
    assert falls.facts == (("idle driver", "made_up"),)


def test_no_smaller_effect_than_two_identical_labels_is_found() -> None:
    searched = campaign(np.random.default_rng(5), awake, blocks=5, run_sd=0.03)
    assert idle(replace(searched, noise={"latency_p50_us": 0.1})).found
    assert not idle(replace(searched, noise={"latency_p50_us": 2.0})).found


def test_one_rate_and_few_blocks_are_said() -> None:
    factors = {name: levels for name, levels in FACTORS.items() if name != "rate_hz"}
    one_rate = idle(campaign(np.random.default_rng(5), narrow, factors=factors))
    assert one_rate == Idle(has_rates=False)
    few_blocks = idle(campaign(np.random.default_rng(5), narrow, blocks=2))
    assert few_blocks == Idle(has_rates=True, blocks=2) and few_blocks.has_few_blocks
    assert not Idle(has_rates=True, blocks=3).has_few_blocks
    assert len({REASON(one_rate), REASON(few_blocks), REASON(Idle(has_rates=True, blocks=3))}) == 3


def test_the_page_has_a_row_per_group_without_a_column_of_the_rate() -> None:
    ratio = Interval(1.5, 1.2, 1.9, 0.99, 5, "t")
    rows = (FallingGroup(("one",), 5, ratio, (150.0, 120.0, 100.0)),)
    falls = RateFalls(rows, 4, "10 Hz", "1000 Hz", ("language",), (("idle driver", "made_up"),))
    columns = [Column(name, name) for name in ("language", "rate_hz")]
    *texts, table = (part for _, part in topic_page("findings/idle", falls, columns).parts)
    assert [(text.key, text.value) for text in texts if isinstance(text, Text)] == [
        ("idle.groups", "1"), ("idle.facts", "1"), ("", ""),
    ]  # fmt: skip
    assert isinstance(table, Table)
    assert table.rows == [
        {"language": "one", "blocks": 5, "ratio": ratio, "medians": "150 → 120 → 100"}
    ]
