"""Test late senders, outages and the start of latency, and costs of lossy runs."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.latency import all_series
from wattwire.analysis.topics.latency.due_time import LateSenders, Outage, late_senders, outages
from wattwire.analysis.topics.latency.numbers import OPEN, latency
from wattwire.analysis.topics.latency.percentiles import Percentiles
from wattwire.analysis.topics.unanswered.numbers import unanswered
from wattwire.report.tests.answered import headline
from wattwire.report.tests.synthetic import SLOW, Shape, put_row, row_of, write_campaign
from wattwire.report.topic_page import Sentences
from wattwire.stats import Interval, TooFew
from wattwire.store import Campaign

SENTENCES = Sentences("latency")
SHAPE = Shape(blocks=3, patterns=("topic",), intervals_s=(0.05,), clients=(1,), duration_s=4.0)


@pytest.mark.parametrize(("factor", "is_reported"), [(1.2, False), (3.0, True)])
def test_the_treatment_with_late_senders_is_found_from_a_factor_of_two(
    tmp_path, factor, is_reported
):
    campaign = write_campaign(tmp_path / "c", SHAPE)
    for path in sorted(campaign.glob("runs/*/summary.json")):
        row = row_of(path)
        if row["factor.language"].item() == SLOW:
            put_row(row.with_columns(since_send_p50_us=pl.col("latency_p50_us") / factor), path)
    evidence = gather(Campaign(campaign))
    late = late_senders(evidence)
    assert (late is not None) == is_reported
    if late is not None:
        assert (late.percentile, late.more, late.is_of_flows) == ("p50", 0, False)
        assert late.latency_us == pytest.approx(factor * late.since_send_us)
    result = latency(evidence, all_series(evidence))
    assert (result.loops, result.late) == (OPEN, late)


def interval(estimate_us):
    return Interval(estimate_us, estimate_us, estimate_us, 0.95, 3, "t", 2)


@pytest.mark.parametrize(
    ("late", "since_send", "is_shown"),
    [
        (interval(200.0), interval(100.0), True),
        (interval(105.0), interval(100.0), False),
        (math.inf, interval(100.0), True),  # most messages were never sent
        (TooFew(90, 1000, "messages"), interval(100.0), False),
    ],
)
def test_the_table_shows_the_time_since_the_send_call_where_it_differs(late, since_send, is_shown):
    few = TooFew(90, 1000, "messages")
    row = Percentiles((), 3, 9, 9, 0, 0, 1.0, (late, few, few, few), (since_send, few), None)
    assert row.is_late is is_shown


def test_a_percentile_of_too_few_messages_is_not_in_the_first_lines(tmp_path):
    campaign = write_campaign(tmp_path / "c", SHAPE)  # 80 messages a run
    for path in sorted(campaign.glob("runs/*/summary.json")):
        row = row_of(path)
        put_row(row.with_columns(since_send_p99_us=pl.col("latency_p99_us") / 9), path)
    assert not late_senders(gather(Campaign(campaign)))


def test_the_table_counts_messages_that_were_never_sent_apart_from_lost_ones(tmp_path):
    evidence = gather(Campaign(write_campaign(tmp_path / "c", SHAPE)))
    every = {
        run: replace(
            series,
            values_us=np.append(series.values_us, [math.inf] * 300),
            since_send_us=np.append(series.since_send_us, [math.inf] * 300),
            loose=series.loose + 300,
            unsent=300,
        )
        for run, series in all_series(evidence).items()
    }
    result = latency(evidence, every)
    assert result.has_unsent and result.has_late
    assert (result.unsent, result.undated) == (300 * evidence.usable.height, 0)
    for row in result.percentiles:
        assert (row.unsent, row.lost) == (300 * row.runs, 0)
        assert row.percentiles[0] == math.inf
        assert isinstance(row.since_send[0], Interval)


def test_costs_per_message_of_lossy_runs_are_compared_with_a_sentence_on_the_loss(tmp_path):
    question = {"id": "Q", "text": "?", "factors": ["language"], "responses": ["cpu"]}
    for loss_share, is_named in ((0.0, False), (0.6, True)):
        shape = replace(SHAPE, loss_share=loss_share, study={"question": [question]})
        campaign = write_campaign(tmp_path / f"{loss_share}", shape)
        evidence = gather(Campaign(campaign))
        answers = answer_all(evidence)
        result = unanswered(evidence, answers).lossy
        assert (result is not None) == is_named
        if result:
            assert result.share == pytest.approx(0.6, abs=0.15)
            assert Sentences("unanswered").lossy(result) in headline(evidence, answers)


@pytest.mark.parametrize(
    ("factor", "lost", "is_found"),
    [(348.0, 2, True), (348.0, 0, True), (20.0, 2, False), (20.0, 0, False)],
)
def test_a_run_with_an_outage_or_a_stall_is_found(tmp_path, factor, lost, is_found):
    """The median over the runs of a treatment hides a server that froze in one of them."""
    campaign = write_campaign(tmp_path / "c", SHAPE)
    path = sorted(campaign.glob("runs/b*-1/summary.json"))[0]
    row = row_of(path).with_columns(
        latency_p99_us=pl.col("latency_p99_us") * factor,
        lost=pl.lit(lost),
        lost_after_warmup=pl.lit(lost),
    )
    put_row(row, path)
    found = outages(gather(Campaign(campaign)))
    assert [(case.run, case.gone, case.more) for case in found] == (
        [(row["run"].item(), lost, 0)] if is_found else []
    )


def test_the_lines_state_outages_before_stalls_and_both_latencies_of_late_senders():
    outage = Outage("b01", "Swift", "p99", math.inf, 100.0, 2, more=1)
    stall = Outage("b02", "", "p50", 250_000.0, 100.0, 0)
    text = SENTENCES.outages((outage, stall))
    assert text.startswith("Run b01 (Swift) had an outage: 2 messages were lost,")
    assert "latency is infinite; the median of the other runs is 100 µs; 1 further run. Run" in text
    assert "Run b02 stalled" in text and text.endswith("runs is 100 µs.")
    late = LateSenders("Swift", "p99", 300.0, 100.0, 2, True)
    assert "p99 latency over the messages of all flows is 300 µs" in SENTENCES.late(late)
    assert "call (Swift); 2 further treatments. Answers" in SENTENCES.late(late)
    alone = LateSenders("", "p50", 300.0, 100.0, 0, False)
    assert "the p50 latency is 300 µs" in SENTENCES.late(alone)
    assert "from the send call. Answers" in SENTENCES.late(alone)
    assert SENTENCES.late(None) == SENTENCES.outages(()) == ""
