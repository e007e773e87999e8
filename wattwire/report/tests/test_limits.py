"""Tests of limits, whose verdicts depend on the interval over runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.limits import BROKEN, HOLDS, UNCLEAR, _verdict, any_broken, check_limits
from wattwire.model.limits import Limit
from wattwire.report.sections.limits import section
from wattwire.report.tests.phrase_search import only
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, put_row, row_of, write_campaign
from wattwire.report.tests.test_comparing import of_variants as variants_of
from wattwire.report.words import failed_calls, unanswered
from wattwire.report.words.answers import headline
from wattwire.report.words.limits import in_short, sentence, value
from wattwire.store import Campaign

SHAPE = {"blocks": 4, "patterns": ("topic",), "intervals_s": (0.05,), "clients": (1,)}


def checked(folder: Any, *limits: dict[str, Any], **shape: Any) -> list[Any]:
    more = Shape(**{**SHAPE, "duration_s": 4.0, **shape}, study={"limit": list(limits)})
    return check_limits(gather(Campaign(write_campaign(folder, more))))


def test_each_treatment_is_held_to_the_limits_that_are_for_it(tmp_path):
    """The planted medians are 400 µs (slow) and 180 µs (fast)."""
    every = {"response": "latency_p50_us", "max": 280}
    fast = {"response": "latency_p50_us", "min": 100, "max": 280, "where": {"language": FAST}}
    found = checked(tmp_path / "c", every, fast)
    assert [(one.treatment, one.verdict) for one in found] == [
        ("Swift", HOLDS), ("Python", BROKEN), ("Swift", HOLDS),
    ] or [(one.treatment, one.verdict) for one in found] == [
        ("Python", BROKEN), ("Swift", HOLDS), ("Swift", HOLDS),
    ]  # fmt: skip
    assert any_broken(found)
    told = only(in_short(found), "limit.broken")
    assert (told.values["broken"], told.values["limits"]) == (1, 3)
    assert only(told, "limit.limit").values["treatment"] == ", Python"
    assert only(told, "limit.at_most").values == {"bound": 280.0, "unit": " µs"}


def test_a_limit_within_the_interval_cannot_be_told_nor_can_two_runs(tmp_path):
    slow = {"where": {"language": SLOW}}
    near = checked(
        tmp_path / "c", {"response": "latency_p90_us", "max": 700, **slow}, duration_s=6.0
    )
    values = next(iter(near)).estimate
    centre = values.estimate
    at = {"response": "latency_p90_us", "max": centre, **slow}
    assert [one.verdict for one in checked(tmp_path / "d", at, duration_s=6.0)] == [UNCLEAR]
    few = checked(tmp_path / "e", at, blocks=2, duration_s=6.0)
    assert "there are only 2 runs" in sentence(few[0]) and few[0].verdict == UNCLEAR
    assert not any_broken(few) and in_short(few).key == "limit.undecided"


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
    found = checked(tmp_path / "c", limit, loss_share=loss)
    assert {one.verdict for one in found} == {verdict}, [sentence(one) for one in found]


def test_a_percentile_among_lost_messages_is_beyond_any_limit(tmp_path):
    limit = {"response": "latency_p90_us", "max": 1e9}
    campaign = write_campaign(
        tmp_path / "c", Shape(**SHAPE, loss_share=0.5, study={"limit": [limit]})
    )
    for path in sorted(campaign.glob("runs/*/summary.json")):
        lost = pl.lit(None, pl.Float64).alias("latency_p90_us")
        row_of(path).with_columns(lost).pipe(put_row, path)
    everywhere = check_limits(gather(Campaign(campaign)))
    assert {one.verdict for one in everywhere} == {BROKEN}
    row_of(path).with_columns(pl.lit(5.0).alias("latency_p90_us")).pipe(put_row, path)
    but_one = check_limits(gather(Campaign(campaign)))
    assert sorted(one.verdict for one in but_one) == [BROKEN, UNCLEAR]
    assert any("unbounded in 3 of 4 runs (loss)" in value(one) for one in but_one)


def test_the_page_has_limits_only_where_the_study_has(tmp_path):
    bare = gather(Campaign(write_campaign(tmp_path / "c", Shape(**SHAPE))))
    assert section(bare) is None
    document = json.loads((tmp_path / "c" / "study.json").read_text())
    document["limit"] = [{"response": "cpu", "max": 1}]
    (tmp_path / "c" / "study.json").write_text(json.dumps(document))
    part = section(gather(Campaign(tmp_path / "c")))
    assert part is not None and part.title == "Limits"
    assert part.parts[0].tone == "warning" and len(part.parts[1].rows) == 2


def of_variants(folder: Any, limit: dict[str, Any], base: str = SLOW) -> list[Any]:
    """Return the checked limit for a campaign whose two languages are labelled as variants."""
    campaign = variants_of(folder, base=base, blocks=4)
    document = json.loads((campaign.path / "study.json").read_text())
    document["limit"] = [limit]
    (campaign.path / "study.json").write_text(json.dumps(document))
    return check_limits(gather(Campaign(campaign.path)))


def test_a_limit_judges_the_head_and_shows_the_base_beside_it(tmp_path):
    """A base that breaks the limit does not fail the head, which is within the limit."""
    limit = {"response": "latency_p50_us", "max": 280}
    mended = of_variants(tmp_path / "c", limit, base=SLOW)
    assert [one.verdict for one in mended] == [HOLDS] and not any_broken(mended)
    assert mended[0].base is not None and mended[0].base.verdict == BROKEN
    base = only(value(mended[0]), "limit.base")
    assert (base.values["base"], base.values["verdict"]) == ("python", BROKEN)
    broken = of_variants(tmp_path / "d", limit, base=FAST)
    assert [one.verdict for one in broken] == [BROKEN]
    assert broken[0].base is not None and broken[0].base.verdict == HOLDS


def test_a_limit_that_names_a_variant_judges_that_variant(tmp_path):
    limit = {"response": "latency_p50_us", "max": 280, "where": {"variant": SLOW}}
    found = of_variants(tmp_path / "c", limit, base=SLOW)
    assert [(one.verdict, one.base) for one in found] == [(BROKEN, None)]


def saturate(campaign, runs, language=SLOW):
    """Mark the first `runs` runs of a language as saturated."""
    left = runs
    for path in sorted(campaign.glob("runs/*/summary.json")):
        row = row_of(path)
        if left and row["factor.language"].item() == language:
            left -= 1
            put_row(row.with_columns(outcome=pl.lit("saturated")), path)
    assert not left


@pytest.mark.parametrize("runs", [1, 4])
def test_a_saturated_run_breaks_a_limit_on_latency_whatever_its_percentiles(tmp_path, runs):
    limits = [{"response": "latency_p50_us", "max": 1e9, "where": {"language": SLOW}},
              {"response": "since_send_p90_us", "max": 1e9, "where": {"language": SLOW}},
              {"response": "latency_p50_us", "min": 1, "where": {"language": SLOW}},
              {"response": "rate_hz_achieved", "min": 1, "where": {"language": SLOW}},
              {"response": "latency_p50_us", "max": 1e9, "where": {"language": FAST}}]  # fmt: skip
    shape = Shape(**SHAPE, study={"limit": limits})
    campaign = write_campaign(tmp_path / "c", shape)
    assert not any_broken(check_limits(gather(Campaign(campaign))))
    saturate(campaign, runs)
    checks = check_limits(gather(Campaign(campaign)))
    assert [check.verdict for check in checks] == [BROKEN, BROKEN, UNCLEAR, HOLDS, HOLDS]
    assert f"saturated) in {runs} of 4 runs" in sentence(checks[0])
    assert any_broken(checks)


def test_a_limit_on_losses_states_the_messages_that_were_never_sent(tmp_path):
    """A sender that stops sending loses nothing, so its limit on losses holds."""
    losses = {"response": "loss_share", "max": 0.01}
    campaign = write_campaign(tmp_path / "c", Shape(**SHAPE, study={"limit": [losses]}))
    for path in campaign.glob("runs/*/summary.json"):
        row = row_of(path)
        put_row(row.with_columns(lost=pl.lit(0), unsent=row["expected"]), path)
    evidence = gather(Campaign(campaign))
    check = check_limits(evidence)[0]
    assert (check.verdict, check.unsent_share) == (HOLDS, 0.5)
    assert "50 % of the due messages were never sent" in sentence(check)
    assert "50 %" in failed_calls.never_sent(evidence)
    assert section(evidence).parts[1].rows[0]["unsent"] == 50.0


def test_a_saturated_treatment_is_named_first_and_is_in_no_ratio_of_latency_or_cost(tmp_path):
    responses = ["latency_p50_us", "cpu_us_per_message"]
    question = {"id": "Q", "text": "?", "factors": ["language"], "responses": responses}
    campaign = write_campaign(tmp_path / "c", Shape(**SHAPE, study={"question": [question]}))
    answers = answer_all(gather(Campaign(campaign)))
    assert [answer.response.column for answer in answers.computed()] == responses
    saturate(campaign, 4)
    evidence = gather(Campaign(campaign))
    answers = answer_all(evidence)
    assert not answers.computed()
    assert headline(evidence, answers).startswith("Python saturated in 4 of 4 runs.")


def test_responses_and_questions_without_a_number_for_one_reason_share_a_sentence(tmp_path):
    responses = ["latency_p50_us", "cpu_us_per_message"]
    questions = [{"id": name, "factors": ["language"], "responses": responses} for name in "AB"]
    campaign = write_campaign(tmp_path / "c", Shape(**SHAPE, study={"question": questions}))
    saturate(campaign, 4)
    evidence = gather(Campaign(campaign))
    (sentence,) = unanswered.questions(evidence, answer_all(evidence))
    assert sentence.values["responses"] == ("median latency", "CPU time per message")
    assert sentence.values["question"].values == {"questions": ("A", "B")}


def test_a_limit_whose_treatments_were_all_skipped_does_not_hold(tmp_path):
    limit = {"response": "latency_p50_us", "max": 1e9, "where": {"language": SLOW}}
    checked(tmp_path / "c", limit)
    evidence = gather(Campaign(tmp_path / "c"))
    plan = [
        {**entry, "skipped": "no toolchain"} if entry["treatment"]["language"] == SLOW else entry
        for entry in evidence.plan
    ]
    found = check_limits(replace(evidence, plan=plan))
    assert [(one.verdict, one.runs) for one in found] == [(UNCLEAR, 0)]


def test_an_unbounded_response_is_beyond_a_maximum_and_shows_no_minimum():
    assert _verdict(Limit("latency_p50_us", max=1e9), math.inf) == BROKEN
    assert _verdict(Limit("latency_p50_us", min=1.0), math.inf) == UNCLEAR
