"""Tests of the counts of deliveries, and of failed calls, which a summary may lack."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather, unanswered
from wattwire.analysis.topics.costs.numbers import powers
from wattwire.analysis.topics.loss.numbers import (
    Affected,
    AffectedTreatments,
    Counts,
    Loss,
    Starts,
    _affected,
    failed_calls,
    loss,
    never_sent,
)
from wattwire.model.derived import column, with_derived
from wattwire.report.parts import Column, Text
from wattwire.report.tests.answered import headline, methods_of
from wattwire.report.tests.synthetic import FAST, Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

SHAPE = Shape(blocks=4, patterns=("topic",), intervals_s=(0.05,), clients=(1,), duration_s=2.0)
FAILED = 3
SENTENCES = Sentences("loss")


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


def test_failed_calls_make_up_the_sum_and_name_their_treatment(before: Evidence) -> None:
    evidence = after(before)
    result = loss(evidence)
    assert {counts.excess for counts in result.treatments} == {0}
    assert {counts.failed for counts in result.treatments} == {0, 4 * FAILED}
    (treatment,) = result.failed.named
    assert (treatment.title, treatment.messages) == ("Swift", 12)
    sentence = SENTENCES.calls_failed(result.failed)
    assert sentence in headline(evidence, answer_all(evidence))
    ((section, (_, threat)),) = topic_page("loss", result, [Column("language", "")]).elsewhere
    assert (section, threat.paragraph, threat.key) == ("threats", "construct", "loss.failed")
    assert threat.words.startswith(sentence)


def test_messages_that_a_dead_server_was_due_precede_the_answers(before: Evidence) -> None:
    """Half of the messages were due after the death of the server, so none of them is lost."""
    is_fast = pl.col("factor.language") == FAST
    usable = before.usable.with_columns(unsent=pl.when(is_fast).then(pl.col("expected")))
    evidence = replace(before, usable=usable)
    unsent = never_sent(evidence)
    (treatment,) = unsent.named
    assert (treatment.title, treatment.share) == ("Swift", 0.5)
    assert headline(evidence, answer_all(evidence)).startswith(SENTENCES.never_sent(unsent))
    few = before.usable.with_columns(unsent=pl.lit(0.0005) * pl.col("expected"))
    assert never_sent(replace(before, usable=few)) == AffectedTreatments()


def test_a_failed_call_is_not_delivered_where_energy_is_divided(tmp_path: Any) -> None:
    shape = replace(SHAPE, measured_energy=True)
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    usable = evidence.usable.with_columns(failed_share=pl.lit(0.75))
    failing = replace(evidence, usable=usable, groups={})
    whole, quarter = (list(powers(one)) for one in (evidence, failing))
    assert len(whole) == 2, "both languages"
    for all_answered, few_answered in zip(whole, quarter, strict=True):
        assert few_answered.j_per_sent == all_answered.j_per_sent
        expected = 4.0 * all_answered.j_per_delivered.estimate
        assert few_answered.j_per_delivered.estimate == pytest.approx(expected)


def test_the_methods_text_says_what_came_of_all_deliveries(before: Evidence) -> None:
    assert methods_of(before).deliveries is None
    evidence = after(before)
    deliveries = methods_of(evidence).deliveries
    assert deliveries is not None and deliveries.failed == 12


def test_without_their_column_failed_calls_are_unknown_and_among_the_lost(
    before: Evidence,
) -> None:
    assert "failed" not in before.usable.columns
    treatments = loss(before).treatments
    assert {(counts.failed, counts.excess) for counts in treatments} == {(None, 0)}
    assert failed_calls(before) == AffectedTreatments()
    assert SENTENCES.calls_failed(AffectedTreatments()) == ""
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
    result = loss(evidence)
    assert {(counts.excess, counts.unknown_runs) for counts in result.treatments} == {(0, 1)}
    assert {SENTENCES.check(counts) for counts in result.treatments} == {
        "correct; not known in 1 run"
    }
    assert (result.lost, result.expected, result.unknown_runs) == (0, 240, 2)
    every = [none.alias(name) for name in names]
    evidence = replace(before, usable=before.usable.with_columns(every), groups={})
    result = loss(evidence)
    assert {(counts.excess, counts.sent) for counts in result.treatments} == {(None, None)}
    assert {SENTENCES.check(counts) for counts in result.treatments} == {"not known"}
    assert (result.unknown_runs, result.runs) == (8, 8)


def test_the_first_treatments_are_named_and_the_others_counted(before: Evidence) -> None:
    evidence = after(before)
    assert _affected(evidence, "failed", 0.5) == AffectedTreatments()
    several = AffectedTreatments((Affected("A", 3.0, 0.25), Affected("", 1.0, 0.5)), more=2)
    assert SENTENCES.never_sent(several).endswith(
        ": A (3, 25 %) and all runs (1, 50 %) and 2 more treatments."
    )


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (Loss(True, 4, expected=200.0), "None of 200 expected deliveries was lost."),
        (
            Loss(True, 4, 0, 3, 200.0, 50.0),
            "Lost: 50 of 200 expected deliveries (25 %), in 3 of 4 runs.",
        ),
        (Loss(True, 4, 1, 0, 150.0), "was lost. The number of messages sent is unknown in 1 run,"),
        (Loss(True, 4, 4), "The number of messages sent is unknown in all runs (4), because"),
    ],
)
def test_the_section_states_the_losses(result: Loss, text: str) -> None:
    section = topic_page("loss", result).section()
    assert section is not None and section.id == "counts"
    losses, counts, starts = section.parts
    assert (losses.key, losses.value) == ("loss.lost", str(result.lost))
    assert text in losses.words
    assert (counts.id, counts.rows, starts.id) == ("counts", [], "starts")
    assert "include the warm-up" not in counts.note


def test_tables_have_counts_starts_and_parts_of_joining_topics_in_their_order() -> None:
    counts = Counts((), 2, 0, 10, 10, 8, 1, 1, None, 0, 0, 0, 0)
    starts = Starts("a/b", "publisher", 2, 0.5, 0.75, None, None)
    failed = AffectedTreatments((Affected("", 1.0, 0.125),))
    result = Loss(
        True, 2, 0, 1, 10.0, 1.0, failed, treatments=(counts,), starts=(starts,), has_warm_up=True
    )
    joining = ((10,), Text("rates"))
    section = topic_page("loss", result).section([joining])
    assert section is not None
    _, warning, of_messages, rates, of_starts = section.parts
    assert (warning.tone, warning.value, rates) == ("warning", "1", joining[1])
    (row,) = of_messages.rows
    assert (row["received_unique"], row["undelivered"], row["check"]) == (8, None, "correct")
    assert "include the warm-up" in of_messages.note
    (row,) = of_starts.rows
    assert (row["startup_max"], row["discovery"]) == (0.75, None)
    assert SENTENCES.check(replace(counts, lost=4)) == "off by 3"


def test_without_messages_there_is_no_section_and_without_a_valid_run_no_table() -> None:
    assert topic_page("loss", Loss()).section() is None
    section = topic_page("loss", Loss(has_messages=True)).section()
    assert section is not None and section.has_no_data
    assert [part.tone for part in section.parts] == ["warning"]
