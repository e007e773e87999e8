"""Tests of limits: the verdicts by the interval over runs, and what page and terminal state."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.limits.numbers import (
    BROKEN,
    HOLDS,
    UNCLEAR,
    Check,
    Limits,
    _verdict,
    limits,
    stored,
)
from wattwire.analysis.topics.loss.numbers import never_sent
from wattwire.model.limits import Limit
from wattwire.report.tests.compared_campaigns import of_variants as variants_of
from wattwire.report.tests.synthetic import (
    FAST,
    SLOW,
    Shape,
    put_row,
    row_of,
    saturate,
    write_campaign,
)
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats import Interval, TooFew
from wattwire.store import Campaign

SHAPE = {"blocks": 4, "patterns": ("topic",), "intervals_s": (0.05,), "clients": (1,)}
SENTENCES = Sentences("limits")


def checked(folder: Any, *bounds: dict[str, Any], **shape: Any) -> Limits:
    more = Shape(**{**SHAPE, "duration_s": 4.0, **shape}, study={"limit": list(bounds)})
    return limits(gather(Campaign(write_campaign(folder, more))))


def test_each_treatment_is_held_to_the_limits_that_are_for_it(tmp_path):
    """The planted medians are 400 µs (slow) and 180 µs (fast)."""
    every = {"response": "latency_p50_us", "max": 280}
    fast = {"response": "latency_p50_us", "min": 100, "max": 280, "where": {"language": FAST}}
    result = checked(tmp_path / "c", every, fast)
    assert sorted((check.treatment, check.verdict) for check in result.checks) == [
        ("Python", BROKEN), ("Swift", HOLDS), ("Swift", HOLDS),
    ]  # fmt: skip
    assert result.verdict == BROKEN and not result.unclear
    (python,) = result.broken
    assert (python.treatment, python.max, python.min, python.unit) == ("Python", 280.0, None, "µs")


def test_a_limit_within_the_interval_cannot_be_told_nor_can_two_runs(tmp_path):
    slow = {"where": {"language": SLOW}}
    near = checked(
        tmp_path / "c", {"response": "latency_p90_us", "max": 700, **slow}, duration_s=6.0
    )
    centre = near.checks[0].value.estimate
    at = {"response": "latency_p90_us", "max": centre, **slow}
    assert checked(tmp_path / "d", at, duration_s=6.0).verdict == UNCLEAR
    few = checked(tmp_path / "e", at, blocks=2, duration_s=6.0)
    assert few.verdict == UNCLEAR and not few.broken
    assert few.checks[0].value == TooFew(2, 3, "runs")


@pytest.mark.parametrize(
    ("limit", "loss", "verdict"),
    [
        ({"response": "lost", "max": 0}, 0.0, HOLDS),
        ({"response": "loss_share", "max": 0.001}, 0.2, BROKEN),
        ({"response": "energy_message_j", "max": 1}, 0.0, UNCLEAR),
        ({"response": "schedule_late_p99_us", "min": 81}, 0.0, BROKEN),
    ],
)
def test_zeros_losses_constants_and_what_was_not_measured(tmp_path, limit, loss, verdict):
    result = checked(tmp_path / "c", limit, loss_share=loss)
    assert {check.verdict for check in result.checks} == {verdict}, result


def test_a_percentile_among_lost_messages_is_beyond_any_limit(tmp_path):
    limit = {"response": "latency_p90_us", "max": 1e9}
    campaign = write_campaign(
        tmp_path / "c", Shape(**SHAPE, loss_share=0.5, study={"limit": [limit]})
    )
    for path in sorted(campaign.glob("runs/*/summary.json")):
        lost = pl.lit(None, pl.Float64).alias("latency_p90_us")
        row_of(path).with_columns(lost).pipe(put_row, path)
    everywhere = limits(gather(Campaign(campaign)))
    assert {check.verdict for check in everywhere.checks} == {BROKEN}
    estimates = {entry["estimate"] for entry in stored(everywhere)["limits"]}
    assert estimates == {None}, "JSON has no infinity"
    row_of(path).with_columns(pl.lit(5.0).alias("latency_p90_us")).pipe(put_row, path)
    but_one = limits(gather(Campaign(campaign)))
    assert sorted(check.verdict for check in but_one.checks) == [BROKEN, UNCLEAR]
    assert "unbounded in 3 of 4 runs (loss)" in str(but_one.unclear[0].value)


def test_a_study_without_limits_has_no_section_and_no_line(tmp_path):
    none = limits(gather(Campaign(write_campaign(tmp_path / "c", Shape(**SHAPE)))))
    assert none == Limits() and none.verdict == HOLDS
    page = topic_page("limits", none)
    assert (page.section(), page.lines) == (None, ())


def of_variants(folder: Any, limit: dict[str, Any], base: str = SLOW) -> Limits:
    """Return the checked limit for a campaign whose two languages are labelled as variants."""
    campaign = variants_of(folder, base=base, blocks=4)
    document = json.loads((campaign.path / "study.json").read_text())
    document["limit"] = [limit]
    (campaign.path / "study.json").write_text(json.dumps(document))
    return limits(gather(Campaign(campaign.path)))


def test_a_limit_judges_the_head_and_shows_the_base_beside_it(tmp_path):
    """A base that breaks the limit does not fail the head, which is within the limit."""
    limit = {"response": "latency_p50_us", "max": 280}
    mended = of_variants(tmp_path / "c", limit, base=SLOW)
    (check,) = mended.checks
    assert mended.verdict == HOLDS and mended.has_bases
    assert check.base is not None
    assert (check.base.treatment, check.base.verdict) == ("python", BROKEN)
    (check,) = of_variants(tmp_path / "d", limit, base=FAST).checks
    assert check.verdict == BROKEN
    assert check.base is not None and check.base.verdict == HOLDS


def test_a_limit_that_names_a_variant_judges_that_variant(tmp_path):
    limit = {"response": "latency_p50_us", "max": 280, "where": {"variant": SLOW}}
    result = of_variants(tmp_path / "c", limit, base=SLOW)
    assert [(check.verdict, check.base) for check in result.checks] == [(BROKEN, None)]


@pytest.mark.parametrize("runs", [1, 4])
def test_a_saturated_run_breaks_a_limit_on_latency_whatever_its_percentiles(tmp_path, runs):
    bounds = [{"response": "latency_p50_us", "max": 1e9, "where": {"language": SLOW}},
              {"response": "since_send_p90_us", "max": 1e9, "where": {"language": SLOW}},
              {"response": "latency_p50_us", "min": 1, "where": {"language": SLOW}},
              {"response": "rate_hz_achieved", "min": 1, "where": {"language": SLOW}},
              {"response": "latency_p50_us", "max": 1e9, "where": {"language": FAST}}]  # fmt: skip
    shape = Shape(**SHAPE, study={"limit": bounds})
    campaign = write_campaign(tmp_path / "c", shape)
    assert not limits(gather(Campaign(campaign))).broken
    saturate(campaign, runs)
    result = limits(gather(Campaign(campaign)))
    verdicts = [check.verdict for check in result.checks]
    assert verdicts == [BROKEN, BROKEN, UNCLEAR, HOLDS, HOLDS]
    assert f"saturated) in {runs} of 4 runs" in str(result.checks[0].value)


def test_a_limit_on_losses_states_the_messages_that_were_never_sent(tmp_path):
    """A sender that stops sending loses nothing, so its limit on losses holds."""
    losses = {"response": "loss_share", "max": 0.01}
    campaign = write_campaign(tmp_path / "c", Shape(**SHAPE, study={"limit": [losses]}))
    for path in campaign.glob("runs/*/summary.json"):
        row = row_of(path)
        put_row(row.with_columns(lost=pl.lit(0), unsent=row["expected"]), path)
    evidence = gather(Campaign(campaign))
    result = limits(evidence)
    assert (result.verdict, result.checks[0].unsent_share) == (HOLDS, 0.5)
    shares = {treatment.share for treatment in never_sent(evidence).named}
    assert shares == {0.5}, "the first lines state the same share"
    assert table_of(result).rows[0]["unsent"] == 50.0
    assert "50 % of the due messages" in SENTENCES.value(result.checks[0])


def test_a_limit_whose_treatments_were_all_skipped_does_not_hold(tmp_path):
    limit = {"response": "latency_p50_us", "max": 1e9, "where": {"language": SLOW}}
    checked(tmp_path / "c", limit)
    evidence = gather(Campaign(tmp_path / "c"))
    plan = [
        {**entry, "skipped": "no toolchain"} if entry["treatment"]["language"] == SLOW else entry
        for entry in evidence.plan
    ]
    result = limits(replace(evidence, plan=plan))
    assert [(check.verdict, check.runs) for check in result.checks] == [(UNCLEAR, 0)]
    assert result.nothing_usable and not Limits().nothing_usable


def test_an_unbounded_response_is_beyond_a_maximum_and_shows_no_minimum():
    assert _verdict(Limit("latency_p50_us", max=1e9), math.inf) == BROKEN
    assert _verdict(Limit("latency_p50_us", min=1.0), math.inf) == UNCLEAR


SURE = Interval(404.0, 372.0, 439.0, 0.975, 4, "t, log scale")


def check(verdict: str, **fields: Any) -> Check:
    """Return the result of one limit with this verdict, as `numbers.py` would return it."""
    usual = {
        "response": "latency_p50_us", "response_title": "median latency", "unit": "µs",
        "max": 280.0, "min": None, "treatment": "A <b>", "value": SURE, "runs": 4,
    }  # fmt: skip
    return Check(**{**usual, **fields}, verdict=verdict)


def table_of(result: Limits) -> Any:
    """Return the table on the page."""
    section = topic_page("limits", result).section()
    assert section is not None and section.id == "limits"
    return section.parts[1]


@pytest.mark.parametrize(
    ("verdicts", "verdict", "tone"),
    [
        ([HOLDS], HOLDS, ""),
        ([HOLDS, HOLDS], HOLDS, ""),
        ([HOLDS, UNCLEAR], UNCLEAR, ""),
        ([UNCLEAR, BROKEN, HOLDS], BROKEN, "warning"),
    ],
)
def test_the_page_states_the_verdict_on_all_limits(verdicts, verdict, tone):
    page = topic_page("limits", Limits(tuple(map(check, verdicts))))
    section = page.section()
    assert section is not None
    text = section.parts[0]
    assert (text.key, text.value, text.tone) == ("limits.verdict", verdict, tone)
    assert page.lines == (((10,), text.words),), "the top of the page has the same sentence"
    assert [row["verdict"] for row in section.parts[1].rows] == verdicts


def test_the_summary_names_three_broken_limits_and_counts_the_others():
    result = Limits(tuple(check(BROKEN, treatment=name) for name in "ABCDE"))
    assert ([check.treatment for check in result.named], result.unnamed) == (["A", "B", "C"], 2)
    summary = SENTENCES.summary(result)
    assert ", C: " in summary and ", D: " not in summary and summary.endswith("; and 2 more.")
    assert SENTENCES.summary(Limits(result.checks[:3])).endswith("4 runs).")


def test_the_table_holds_values_and_has_columns_only_where_they_say_something():
    columns = [column.key for column in table_of(Limits((check(HOLDS),))).columns]
    assert columns == ["limit", "verdict", "value", "runs"]
    base = check(BROKEN, treatment="base", value=5.0)
    table = table_of(
        Limits((check(HOLDS, base=base, unsent_share=0.25, value=TooFew(2, 3, "runs")),))
    )
    assert [column.key for column in table.columns] == [*columns, "unsent", "base"]
    (row,) = table.rows
    assert (row["value"], row["runs"], row["unsent"]) == (TooFew(2, 3, "runs"), 4, 25.0)
    assert row["base"].startswith("base 5.00") and row["limit"].endswith(", A <b>")
    assert table.note and table.title


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ({"max": 280.0}, "median latency at most 280 µs, A <b>"),
        ({"max": None, "min": 1.0, "unit": "", "treatment": ""}, "median latency at least 1.00"),
        ({"min": 1.0}, "median latency at most 280 µs and at least 1.00 µs, A <b>"),
    ],
)
def test_a_limit_is_named_with_its_bounds_and_its_treatment(bounds, text):
    assert SENTENCES.limit(check(HOLDS, **bounds)) == text


def test_the_stored_entry_has_an_interval_a_common_value_or_a_reason():
    few = TooFew(2, 3, "runs")
    checks = tuple(check(HOLDS, value=value) for value in (SURE, 5.0, few))
    entries = stored(Limits(checks))["limits"]
    assert [(entry["estimate"], entry["low"], entry["reason"]) for entry in entries] == [
        (404.0, 372.0, ""), (5.0, None, ""), (None, None, str(few)),
    ]  # fmt: skip
