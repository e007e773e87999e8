"""Test the table of rates: per sender and in total, over the stated span."""

from __future__ import annotations

import polars as pl
import pytest

from wattwire.analysis.dataset import gather
from wattwire.report.tables import rates
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.store import Campaign


def evidence_of(folder, *patterns):
    shape = Shape(blocks=2, patterns=patterns, clients=(8,), intervals_s=(0.0025,))
    return gather(Campaign(write_campaign(folder, shape)))


def test_a_rate_is_stated_per_client_in_total_and_as_calls_per_second(tmp_path):
    evidence = evidence_of(tmp_path / "c", "service")
    spans = {"rate_hz_offered": 3200.0, "rate_hz_achieved": 3100.0, "rate_hz_delivered": 610.0,
             "rate_window_s": 5.0}  # fmt: skip
    evidence.usable = evidence.usable.with_columns(
        **{name: pl.lit(value) for name, value in spans.items()}
    )
    evidence.groups.clear()
    rows = rates.table(evidence).rows
    assert len(rows) == 2
    for row in rows:
        assert row["senders"] == 8 and row["each"] == pytest.approx(400.0)
        assert row["senders"] * row["each"] == pytest.approx(row["offered"])
        assert (row["sent"], row["per_s"], row["window_s"]) == (3100.0, 610.0, 5.0)
    assert rates.delivered_title(evidence).key == "rates.calls"


def test_a_topic_has_one_sender_for_any_number_of_subscribers(tmp_path):
    evidence = evidence_of(tmp_path / "c", "topic")
    assert {row["senders"] for row in rates.table(evidence).rows} == {1}
    assert rates.delivered_title(evidence).key == "rates.messages"
    both = evidence_of(tmp_path / "d", "topic", "service")
    assert rates.delivered_title(both).key == "rates.both"
