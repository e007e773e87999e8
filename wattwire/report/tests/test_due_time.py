"""Test the sentences on late senders, the start of latency, and costs of lossy runs."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.latency import all_series
from wattwire.analysis.topics.unanswered.numbers import unanswered
from wattwire.report.sections.latency import section
from wattwire.report.tables.due_time import differs, late_senders, outages
from wattwire.report.tests.answered import headline
from wattwire.report.tests.phrase_search import only
from wattwire.report.tests.synthetic import SLOW, Shape, put_row, row_of, write_campaign
from wattwire.report.topic_page import Sentences
from wattwire.stats import Interval, TooFew
from wattwire.store import Campaign

SHAPE = Shape(blocks=3, patterns=("topic",), intervals_s=(0.05,), clients=(1,), duration_s=4.0)


@pytest.mark.parametrize(("factor", "is_reported"), [(1.2, False), (3.0, True)])
def test_the_page_names_the_treatment_with_late_senders_from_a_factor_of_two(
    tmp_path, factor, is_reported
):
    campaign = write_campaign(tmp_path / "c", SHAPE)
    for path in sorted(campaign.glob("runs/*/summary.json")):
        row = row_of(path)
        if row["factor.language"].item() == SLOW:
            put_row(row.with_columns(since_send_p50_us=pl.col("latency_p50_us") / factor), path)
    evidence = gather(Campaign(campaign))
    sentence = late_senders(evidence)
    assert bool(sentence) == is_reported
    if is_reported:
        values = only(sentence, "due_time.late").values
        assert values["percentile"] == "p50"
        assert values["latency"] == pytest.approx(factor * values["since_send"])
    part = section(evidence, all_series(evidence))
    assert "was due" in part.parts[0].words, "an open loop"


def interval(estimate_us):
    return Interval(estimate_us, estimate_us, estimate_us, 0.95, 3, "t", 2)


@pytest.mark.parametrize(
    ("latency", "since_send", "is_shown"),
    [
        (interval(200.0), interval(100.0), True),
        (interval(105.0), interval(100.0), False),
        (math.inf, interval(100.0), True),  # most messages were never sent
        (TooFew(90, 1000, "messages"), interval(100.0), False),
    ],
)
def test_the_table_shows_the_time_since_the_send_call_where_it_differs(
    latency, since_send, is_shown
):
    few = TooFew(90, 1000, "messages")
    row = {"p50_us": latency, "since_send_p50": since_send, "p99_us": few, "since_send_p99": few}
    assert differs(row) is is_shown


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
    part = section(evidence, every)
    (table,) = [p for p in part.parts if getattr(p, "id", "") == "latency-percentiles"]
    assert {"unsent", "since_send_p50"} <= {column.key for column in table.columns}
    for row in table.rows:
        assert (row["unsent"], row["lost"]) == (300 * row["runs"], 0)
        assert row["p50_us"] == math.inf
        assert math.isfinite(row["since_send_p50"].estimate)


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


@pytest.mark.parametrize(("factor", "lost", "phrase"), [(348.0, 2, "outage"), (348.0, 0, "stall"),
                                                       (20.0, 2, ""), (20.0, 0, "")])  # fmt: skip
def test_the_page_names_a_run_with_an_outage_or_a_stall(tmp_path, factor, lost, phrase):
    """The median over the runs of a treatment hides a server that froze in one of them."""
    campaign = write_campaign(tmp_path / "c", SHAPE)
    path = sorted(campaign.glob("runs/b*-1/summary.json"))[0]
    row = row_of(path).with_columns(
        latency_p99_us=pl.col("latency_p99_us") * factor,
        lost=pl.lit(lost),
        lost_after_warmup=pl.lit(lost),
    )
    put_row(row, path)
    sentence = outages(gather(Campaign(campaign)))
    assert bool(sentence) == bool(phrase)
    if phrase:
        values = only(sentence, f"due_time.{phrase}").values
        assert (values["run"], values.get("gone", 0)) == (row["run"].item(), lost)
