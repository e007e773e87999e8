"""Test that answers, limits and medians use no percentile of too few messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.document import document
from wattwire.analysis.topics.controls.numbers import noise
from wattwire.analysis.topics.limits.numbers import BROKEN, UNCLEAR, limits
from wattwire.model.quantiles import share_of
from wattwire.report.tests.answered import headline
from wattwire.report.tests.synthetic import Shape, put_row, row_of, write_campaign
from wattwire.store import Campaign

ASKED = ["latency_p50_us", "latency_p90_us", "latency_p99_us"]
STUDY = {
    "question": [{"id": "Q", "factors": ["language"], "responses": ASKED}],
    "limit": [{"response": name, "max": 1e9} for name in ASKED],
}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: Any) -> Evidence:
    """Return runs of 200 messages: enough for p90 (100), too few for p99 (1,000)."""
    shape = Shape(
        blocks=4, patterns=("topic",), intervals_s=(0.05,), clients=(1,), duration_s=10.0,
        study=STUDY,
    )  # fmt: skip
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("c") / "c", shape)))


def test_sizes_are_those_of_the_rule() -> None:
    sizes = [stats.carried_size(share_of(name) or 0.0) for name in ASKED]
    assert sizes == [6, 100, 1_000]
    assert share_of("latency_p999_us") == 0.999
    assert share_of("schedule_late_p99_us") is None


def test_messages_are_counted_in_each_run() -> None:
    frame = pl.DataFrame({"expected_after_warmup": [99, 100, None], "latency_p90_us": [1.0] * 3})
    assert carried.too_few(frame, "latency_p90_us").tolist() == [True, False, False]
    assert np.isnan(carried.carried(frame, "latency_p90_us")).tolist() == [True, False, False]
    assert not carried.too_few(frame, "cpu_us_per_message").any()
    assert str(carried.why_not(frame, "latency_p90_us")) == (
        "there are only 99 messages in a run, and at least 100 are needed"
    )


@pytest.mark.parametrize(
    ("name", "is_void"),
    [("latency_p99_us", True), ("since_send_max_us", True), ("cpu_us_per_message", True),
     ("cpu_us_per_message_above_silent", True), ("wire_bytes_per_message", True),
     ("time_us_per_message", False), ("rate_hz_delivered", False), ("memory_kib", False)],
)  # fmt: skip
def test_saturation_makes_latencies_and_costs_per_message_void(name: str, is_void: bool) -> None:
    frame = pl.DataFrame({"outcome": ["completed", "saturated", None], name: [1.0] * 3})
    assert carried.void(frame, name).tolist() == [False, is_void, False]


def test_answers_limits_and_medians_leave_it_out_and_say_why(evidence: Evidence) -> None:
    answers = answer_all(evidence)
    p50, p90, p99 = (item.result for item in answers.items)
    assert isinstance(p50, stats.Ratio) and isinstance(p90, stats.Ratio)
    assert "there are only 200 messages in a run, and at least 1\u202f000 are needed" in str(p99)
    checks = limits(evidence).checks
    assert [check.verdict for check in checks][-2:] == [UNCLEAR, UNCLEAR]
    assert "there are only 200 messages in a run" in str(checks[-1].value)
    for treatment in document(evidence, answers).values["treatments"]:
        assert treatment["medians"]["latency_p99_us"] is None
        assert treatment["medians"]["latency_p90_us"] > 0
    assert "No 99th percentile of latency: there are only 200 messages in a run" in headline(
        evidence, answers
    )


def test_a_percentile_among_lost_messages_is_infinite_however_few_there_were() -> None:
    frame = pl.DataFrame(
        {"expected_after_warmup": [400, 400], "lost_after_warmup": [400, 5],
         "latency_p99_us": [np.inf, np.inf]}
    )  # fmt: skip
    assert carried.too_few(frame, "latency_p99_us").tolist() == [False, True]
    assert str(carried.why_not(frame, "latency_p99_us")).startswith("there are only 400 messages")


def test_a_total_loss_breaks_a_limit_on_p99(tmp_path: Any) -> None:
    shape = Shape(
        blocks=4, patterns=("service",), intervals_s=(0.05,), clients=(1,), duration_s=10.0,
        loss_share=0.9, study={"limit": [{"response": "latency_p99_us", "max": 1e9}]},
    )  # fmt: skip
    folder = write_campaign(tmp_path / "c", shape)
    for path in folder.glob("runs/*/summary.json"):
        lost = pl.lit(None, pl.Float64).alias("latency_p99_us")
        row_of(path).with_columns(lost).pipe(put_row, path)
    checks = limits(gather(Campaign(folder))).checks
    assert {check.verdict for check in checks} == {BROKEN}, checks
    assert {check.runs for check in checks} == {4}


def test_control_runs_with_few_messages_say_nothing_of_p99(tmp_path: Any) -> None:
    shape = Shape(
        blocks=4, patterns=("topic",), intervals_s=(0.05,), clients=(1,), duration_s=10.0,
        b_over_a=1.0, study=STUDY,
    )  # fmt: skip
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    told = noise(evidence)
    assert "latency_p50_us" in told and "latency_p99_us" not in told
