"""Test the rates per sender and in total, over the stated span, and their table."""

from __future__ import annotations

import polars as pl
import pytest

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.rates.numbers import (
    BOTH,
    CALLS,
    MESSAGES,
    Rates,
    TreatmentRates,
    delivered_kind,
    rates,
)
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

SENTENCES = Sentences("rates")


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
    result = rates(evidence)
    assert len(result.treatments) == 2
    for row in result.treatments:
        assert row.senders == 8 and row.each_hz == pytest.approx(400.0)
        assert row.senders * row.each_hz == pytest.approx(row.offered_hz)
        assert (row.sent_hz, row.delivered_hz, row.window_s) == (3100.0, 610.0, 5.0)
    assert result.kind == CALLS


def test_a_topic_has_one_sender_for_any_number_of_subscribers(tmp_path):
    result = rates(evidence_of(tmp_path / "c", "topic"))
    assert {row.senders for row in result.treatments} == {1}
    assert result.kind == MESSAGES
    assert delivered_kind(evidence_of(tmp_path / "d", "topic", "service")) == BOTH


@pytest.mark.parametrize(
    ("kind", "title"),
    [(CALLS, "calls/s"), (MESSAGES, "messages/s"), (BOTH, "calls or messages/s")],
)
def test_the_table_names_what_is_delivered_and_leaves_unknown_rates_empty(kind, title):
    row = TreatmentRates((), 2, 8, None, 3200.0, 3100.0, 610.0, 5.0)
    ((_, table),) = topic_page("rates", Rates((row,), kind)).parts
    titles = {column.key: column.title for column in table.columns}
    assert titles["per_s"] == SENTENCES.delivered(kind) == title
    assert table.rows == [
        {"runs": 2, "senders": 8, "each": None, "offered": 3200.0, "sent": 3100.0, "per_s": 610.0,
         "window_s": 5.0},
    ]  # fmt: skip
    assert topic_page("rates", Rates()).parts == ()
