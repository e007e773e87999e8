"""Tests of the counts of failed calls, which a summary may lack."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather, unanswered
from wattwire.model.derived import column, with_derived
from wattwire.report.parts import Table
from wattwire.report.sections import costs, counts
from wattwire.report.tests.phrase_search import only
from wattwire.report.tests.synthetic import FAST, Shape, write_campaign
from wattwire.report.words import failed_calls
from wattwire.report.words.answers import headline
from wattwire.report.words.methods import methods
from wattwire.report.words.threats import threats
from wattwire.store import Campaign

SHAPE = Shape(blocks=4, patterns=("topic",), intervals_s=(0.05,), clients=(1,), duration_s=2.0)
FAILED = 3


@pytest.fixture(scope="module")
def before(tmp_path_factory: Any) -> Evidence:
    """Return the evidence of a campaign whose summary has no column `failed`."""
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("c") / "c", SHAPE)))


def after(before: Evidence) -> Evidence:
    """Return the evidence after FAILED received calls of each FAST run became failed calls."""
    is_fast = pl.col("factor.language") == FAST
    usable = before.usable.with_columns(
        failed=pl.when(is_fast).then(FAILED).otherwise(0),
        received_unique=pl.col("received_unique") - pl.when(is_fast).then(FAILED).otherwise(0),
    )
    return replace(before, usable=usable)


def rows(evidence: Evidence) -> list[dict[str, Any]]:
    tables = [part for part in counts.section(evidence).parts if isinstance(part, Table)]
    return list(next(table for table in tables if table.id == "counts").rows)


def test_failed_calls_make_up_the_sum_and_name_their_treatment(before: Evidence) -> None:
    evidence = after(before)
    assert {row["check"] for row in rows(evidence)} == {"correct"}
    assert {row["failed"] for row in rows(evidence)} == {0, 4 * FAILED}
    failed = failed_calls.sentence(evidence)
    (treatment,) = failed.values["treatments"]
    assert (treatment.values["treatment"], treatment.values["calls"]) == ("Swift", 12)
    assert only(headline(evidence, answer_all(evidence)), "failed_calls.calls_failed") == failed
    internal = [text for _, text in threats(evidence, answer_all(evidence))]
    assert any(failed in text for text in internal)


def test_messages_that_a_dead_server_was_due_precede_the_answers(before: Evidence) -> None:
    """Half of the messages were due after the death of the server, so none of them is lost."""
    is_fast = pl.col("factor.language") == FAST
    usable = before.usable.with_columns(unsent=pl.when(is_fast).then(pl.col("expected")))
    evidence = replace(before, usable=usable)
    unsent = failed_calls.never_sent(evidence)
    (treatment,) = unsent.values["treatments"]
    assert (treatment.values["treatment"], treatment.values["share"]) == ("Swift", 0.5)
    assert headline(evidence, answer_all(evidence)).startswith(unsent)
    few = before.usable.with_columns(unsent=pl.lit(0.0005) * pl.col("expected"))
    assert failed_calls.never_sent(replace(before, usable=few)) == ""


def test_a_failed_call_is_not_delivered_where_energy_is_divided(tmp_path: Any) -> None:
    shape = replace(SHAPE, measured_energy=True)
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    usable = evidence.usable.with_columns(failed_share=pl.lit(0.75))
    failing = replace(evidence, usable=usable, groups={})
    whole, quarter = (costs._powers_table(one).rows for one in (evidence, failing))
    for all_answered, few_answered in zip(whole, quarter, strict=True):
        assert few_answered["j_per_sent"] == all_answered["j_per_sent"]
        expected = 4.0 * all_answered["j_per_delivered"].estimate
        assert few_answered["j_per_delivered"].estimate == pytest.approx(expected)


def test_the_methods_text_says_what_came_of_all_deliveries(before: Evidence) -> None:
    def told(evidence: Evidence) -> list[str]:
        sentences = methods(evidence, answer_all(evidence))
        return [text for text in sentences if "expected deliveries" in text]

    assert told(before) == []
    (text,) = told(after(before))
    assert "12 calls failed (ended with an error before their timeout)" in text


def test_in_an_older_campaign_failed_calls_are_unknown_and_among_the_lost(
    before: Evidence,
) -> None:
    assert "failed" not in before.usable.columns
    assert {row["failed"] for row in rows(before)} == {None}
    assert {row["check"] for row in rows(before)} == {"correct"}
    assert failed_calls.sentence(before) == ""
    assert (unanswered(before.usable) == column(before.usable, "lost")).all()
    assert np.isnan(column(with_derived(before.usable), "failed_share")).all()


def test_a_quantile_among_failed_calls_is_infinite() -> None:
    frame = pl.DataFrame({"failed": [6, 0], "lost": [0, 0], "latency_p50_us": [None, None]})
    found = column(with_derived(frame), "latency_p50_us")
    assert found[0] == math.inf and math.isnan(found[1])


def test_what_a_sender_without_records_sent_is_not_known_and_is_no_zero(before: Evidence) -> None:
    none = pl.lit(None, pl.Int64)
    is_first = pl.col("block") == 1
    names = ("sent", "expected", "received_unique", "lost")
    blank = [pl.when(is_first).then(none).otherwise(pl.col(name)).alias(name) for name in names]
    evidence = replace(before, usable=before.usable.with_columns(blank), groups={})
    assert {row["check"] for row in rows(evidence)} == {"correct; not known in 1 run"}
    text = counts.section(evidence).parts[0]
    assert only(text, "counts.none_lost").values == {"expected": 240}
    assert only(text, "counts.some_unknown").values == {"runs": 2}
    every = [none.alias(name) for name in names]
    evidence = replace(before, usable=before.usable.with_columns(every), groups={})
    assert {row["check"] for row in rows(evidence)} == {"not known"}
    text = counts.section(evidence).parts[0].words
    assert (text.key, text.values) == ("counts.all_unknown", {"runs": 8})
