"""A percentile of too few messages enters no answer, no limit and no median."""

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
from wattwire.analysis.limits import UNCLEAR, check_limits
from wattwire.report.tests.synthetic import FileCampaign, Shape, write_campaign
from wattwire.report.words.answers import headline

ASKED = ["latency_p50_us", "latency_p90_us", "latency_p99_us"]
STUDY = {
    "question": [{"id": "Q", "factors": ["language"], "responses": ASKED}],
    "limit": [{"response": name, "max": 1e9} for name in ASKED],
}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: Any) -> Evidence:
    """Runs of 200 messages: enough for p90 (100), too few for p99 (1,000)."""
    shape = Shape(
        blocks=4, patterns=("topic",), intervals_s=(0.05,), clients=(1,), duration_s=10.0,
        study=STUDY,
    )  # fmt: skip
    return gather(FileCampaign(write_campaign(tmp_path_factory.mktemp("c") / "c", shape)))


def test_sizes_are_those_of_the_rule() -> None:
    sizes = [stats.carried_size(carried.share_of(name) or 0.0) for name in ASKED]
    assert sizes == [6, 100, 1_000]
    assert carried.share_of("latency_p999_us") == 0.999
    assert carried.share_of("schedule_late_p99_us") is None


def test_messages_are_counted_in_each_run() -> None:
    frame = pl.DataFrame({"expected_after_warmup": [99, 100, None], "latency_p90_us": [1.0] * 3})
    assert carried.too_few(frame, "latency_p90_us").tolist() == [True, False, False]
    assert np.isnan(carried.carried(frame, "latency_p90_us")).tolist() == [True, False, False]
    assert not carried.too_few(frame, "cpu_us_per_message").any()
    assert str(carried.why_not(frame, "latency_p90_us")) == (
        "too few: 99 messages in a run, at least 100 needed"
    )


def test_answers_limits_and_medians_leave_it_out_and_say_why(evidence: Evidence) -> None:
    answers = answer_all(evidence)
    p50, p90, p99 = (item.result for item in answers.items)
    assert isinstance(p50, stats.Ratio) and isinstance(p90, stats.Ratio)
    assert "too few: 200 messages in a run, at least 1,000 needed" in str(p99)
    assert [one.verdict for one in check_limits(evidence)][-2:] == [UNCLEAR, UNCLEAR]
    assert "too few: 200 messages in a run" in check_limits(evidence)[-1].value()
    for treatment in document(evidence, answers)["treatments"]:
        assert treatment["medians"]["latency_p99_us"] is None
        assert treatment["medians"]["latency_p90_us"] > 0
    assert "No 99th percentile of latency: too few: 200 messages in a run" in headline(
        evidence, answers
    )
