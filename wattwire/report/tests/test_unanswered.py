"""Tests of the page's first lines on treatments and questions without an answer."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.answering.baselines import baseline_of, planned_baseline
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.answers.nothing import ended
from wattwire.analysis.topics.answers.numbers import Averaged
from wattwire.analysis.topics.answers.statements import statement
from wattwire.analysis.topics.ranking.numbers import ranking
from wattwire.model.words import level_title, percent
from wattwire.report.sections.design import section as asked_section
from wattwire.report.tests.answered import answered_study, headline, page_headline
from wattwire.report.tests.phrase_search import keys_in, only, phrases_in
from wattwire.report.tests.planted import planted
from wattwire.report.tests.synthetic import (
    FAST,
    SLOW,
    Shape,
    put_row,
    row_of,
    saturate,
    write_campaign,
)
from wattwire.report.topic_page import Sentences
from wattwire.report.words import unanswered
from wattwire.store import Campaign

TOPICS = ("topic",)
ANSWERS, RANKING = Sentences("answers"), Sentences("ranking")


def evidence_of(folder, shape=None, exclude_runs_of=None, study=None):
    """Return the evidence of a campaign in which conditions can exclude all runs of a language."""
    path = write_campaign(folder, shape or Shape(patterns=TOPICS))
    if study:
        document = json.loads((path / "study.json").read_text())
        (path / "study.json").write_text(json.dumps(document | study))
    for run in sorted((path / "runs").iterdir()):
        document = json.loads((run / "run.json").read_text())
        if document["treatment"]["language"] != exclude_runs_of:
            continue
        codes = ["other_load", "stall"] if document["block"] == 1 else ["other_load"]
        document["reasons"] = [{"code": c, "detail": c} for c in codes]
        (run / "run.json").write_text(json.dumps(document | {"verdict": "invalid"}))
        row = row_of(run / "summary.json")
        row = row.with_columns(verdict=pl.lit("invalid"), used=pl.lit(False))
        row.pipe(put_row, run / "summary.json")
    return gather(Campaign(path))


def test_a_treatment_without_a_valid_run_is_named_with_what_excluded_its_runs(tmp_path):
    evidence = evidence_of(tmp_path / "c", exclude_runs_of=SLOW)
    text = only(page_headline(evidence, answer_all(evidence)), "unanswered.no_answer")
    assert text.values["treatments"] == ("Python",)
    assert [one.values for one in phrases_in(text, "unanswered.cause")] == [
        {"cause": "machine busy", "runs": 12, "tried": 12},
        {"cause": "machine stalled", "runs": 4, "tried": 12},
    ]
    (row,) = unanswered.table(unanswered.treatments(evidence)).rows
    assert row["name"] == "Python" and row["what"] == "no answer"


def test_what_was_left_out_is_named_apart_and_what_the_study_excludes_is_not(tmp_path):
    shape = Shape(patterns=TOPICS, skip={"language": SLOW, "clients": 2})
    evidence = evidence_of(tmp_path / "c", shape)
    found = unanswered.treatments(evidence)
    assert [(one.names, one.left_out) for one in found] == [
        (("Python, 0.05 s, 2 clients", "Python, 0.2 s, 2 clients"), True)
    ]
    skipped = only(unanswered.in_short(found), "unanswered.skipped")
    assert skipped.values["reason"] == "the cell has no such capability"
    own = {"exclude": {"treatments": [{"language": SLOW, "clients": 2, "because": "why not"}]}}
    evidence = evidence_of(tmp_path / "d", shape, study=own)
    assert unanswered.treatments(evidence) == [] and unanswered.table([]) is None


def test_many_are_counted_in_the_headline_and_stand_in_the_table(tmp_path):
    names = tuple(f"cell {at}" for at in range(9))
    found = [unanswered.Missing(("a",), "why"), unanswered.Missing(names, "other", True)]
    text = unanswered.in_short(found)
    assert only(text, "unanswered.no_answer").values == {"treatments": ("a",), "reason": "why"}
    assert only(text, "unanswered.more").values == {"treatments": 9}
    assert len(unanswered.table(found).rows) == 10


def test_a_baseline_without_data_gives_way_to_the_first_level_with_some(tmp_path):
    asked = {"id": "Q", "factors": ["language"], "responses": ["cpu_us_per_message"]}
    names = {FAST: FAST, SLOW: SLOW, "third": "third"}
    study = {"factors": {"language": ["third", FAST, SLOW]}, "question": [asked],
             "answers": {}, "titles": {"language": names}}  # fmt: skip
    evidence = evidence_of(tmp_path / "c", study=study)
    assert planned_baseline(evidence, "language") == "third"
    assert baseline_of(evidence, "language") == FAST
    found = {item.level: item.result for item in answer_all(evidence).items}
    assert isinstance(found[SLOW], stats.Ratio), "compared with FAST, not with nothing"
    assert str(found["third"]) == "third was not run"


def test_a_baseline_that_is_there_stays_whatever_stands_first(tmp_path):
    evidence = evidence_of(tmp_path / "c")
    assert baseline_of(evidence, "language") == SLOW == planned_baseline(evidence, "language")


def test_a_response_without_a_number_is_named_with_the_question_and_the_reason(tmp_path):
    evidence = evidence_of(tmp_path / "c")
    exact, unmeasured = unanswered.questions(evidence, answer_all(evidence))
    assert (exact.key, exact.values["responses"]) == (
        "unanswered.no_interval",
        ("memory per node",),
    )
    assert exact.values["question"].values == {"question": "Q1"}
    assert "0.488 without scatter" in exact.values["reason"]
    assert unmeasured.key == "unanswered.no_answer_in"
    assert unmeasured.values["question"].values == {"question": "Q2"}
    assert "no meter measured energy" in unmeasured.values["reason"]


def test_an_answer_that_got_lost_stands_before_everything(tmp_path):
    asked = {"id": "Q9", "factors": ["settings.gone"], "responses": ["latency_p50_us"]}
    evidence = evidence_of(tmp_path / "c", study={"question": [asked]})
    answers = answer_all(evidence)
    text = page_headline(evidence, answers)
    assert keys_in(text)[0] == "unanswered.requested_lost"
    assert only(text, "unanswered.requested").values == {
        "question": "Q9", "response": "median latency", "factor": "gone",
    }  # fmt: skip
    held = {"question": [asked], "fixed": {"settings.gone": 1}}
    evidence = evidence_of(tmp_path / "d", study=held)
    assert unanswered.lost(evidence, answer_all(evidence)) == ""


def test_a_factor_that_is_held_at_one_level_is_named_wherever_it_is_held(tmp_path):
    asked = {"id": "Q1", "factors": ["settings.depth", "language"], "responses": ["cpu"]}
    document = {"question": [asked], "fixed": {"settings.depth": 5}}
    evidence = evidence_of(tmp_path / "c", study=document)
    (line,) = unanswered.questions(evidence, answer_all(evidence))
    assert (line.key, line.values["factor"]) == ("unanswered.no_answer_about", "settings.depth")
    assert "one level here (5)" in line.values["reason"]
    assert asked_section(evidence).parts[1].rows[0]["factors"] == "depth (held at 5) and language"
    document["factors"] = {"settings.depth": [5], "language": [FAST, SLOW]}
    evidence = evidence_of(tmp_path / "d", study=document)
    assert unanswered.questions(evidence, answer_all(evidence)) == [line]


def test_questions_whose_factors_are_all_held_do_not_ask_for_no_comparison(tmp_path):
    asked = {"id": "Q1", "factors": ["settings.depth"], "responses": ["cpu"]}
    evidence = evidence_of(
        tmp_path / "c", study={"question": [asked], "fixed": {"settings.depth": 5}}
    )
    text = page_headline(evidence, answer_all(evidence))
    assert text == (
        "24 runs were measured, all with the same levels (depth 5), so there is nothing to "
        "compare. Specify two or more levels for one of these factors."
    )


def died(folder, ready, sent=0, runs=24):
    """Return the evidence of a campaign whose first `runs` runs died after `sent` messages."""
    shape = Shape(patterns=TOPICS, died_runs=tuple(range(runs)))
    path = write_campaign(folder, shape)
    for run in (path / "runs").iterdir():
        row = row_of(run / "summary.json")
        if row["outcome"].item() == "died":
            row.with_columns(sent=pl.lit(sent)).pipe(put_row, run / "summary.json")
        document = json.loads((run / "run.json").read_text())
        for node in document["nodes"]:
            node["ready"] = node["ready"] if ready else None
        (run / "run.json").write_text(json.dumps(document))
    return gather(Campaign(path))


def test_that_all_nodes_died_before_they_sent_anything_stands_first_with_its_reason(tmp_path):
    for ready, when in ((False, "before READY"), (True, "before sending")):
        evidence = died(tmp_path / str(ready), ready=ready)
        result = ended(evidence)
        assert result is not None
        assert (result.runs, result.has_excluded, result.outcomes) == (24, False, ("died",))
        assert result.when == when and result.why.startswith("client-0: killed by signal 9")
        text = page_headline(evidence, answer_all(evidence))
        before = "before READY" if when == "before READY" else "before anything was sent"
        assert ANSWERS.ended(result) in text
        assert ANSWERS.ended(result).startswith(f"All 24 runs died {before}: client-0: killed by ")
        assert ANSWERS.ended(result).count(before) == 1


def test_runs_that_died_beside_others_or_while_they_sent_are_a_result(tmp_path):
    assert ended(died(tmp_path / "a", ready=True, runs=23)) is None
    assert ended(died(tmp_path / "b", ready=True, sent=1)) is None


LOSS = {"question": [{"id": "L", "factors": ["language"], "responses": ["loss"]}]}


def test_loss_is_answered_with_its_number_in_percentage_points(tmp_path):
    evidence = evidence_of(tmp_path / "c", Shape(patterns=TOPICS, loss_share=0.05), study=LOSS)
    answers = answer_all(evidence)
    (answer,) = answers.items
    assert isinstance(answer.result, stats.Difference)
    difference = statement(evidence, answer, answers.family)
    assert difference.response.title == "share of messages lost"
    assert difference.level_title == "Swift"
    assert difference.is_in_points and difference.level_mean is not None
    assert 0 < difference.level_mean < 1
    assert " percentage points " in ANSWERS.claim(difference)
    assert f", mean {percent(difference.level_mean)} against " in ANSWERS.claim(difference)
    assert unanswered.questions(evidence, answers) == []


def test_no_loss_at_all_is_said_and_is_no_missing_answer(tmp_path):
    evidence = evidence_of(tmp_path / "c", study=LOSS)
    answers = answer_all(evidence)
    assert str(answers.items[0].result) == "none in any of 24 runs"
    assert unanswered.questions(evidence, answers) == []


def test_means_whose_quotient_is_not_the_ratio_are_omitted(tmp_path):
    evidence = evidence_of(tmp_path / "c")
    answers = answer_all(evidence)
    latency = next(a for a in answers.items if a.response.column == "latency_p50_us")
    assert not statement(evidence, latency, 1).has_means
    far = stats.Interval(254.0, 250.0, 260.0, 0.95, 12, "t", 9.0)
    answer = replace(latency, result=replace(latency.result, interval=far))
    assert not statement(evidence, answer, 1).has_means


LARGE = {
    "factors": {"cell": ["base", "slow", "slowest"], "payload_bytes": [8, 64, 1024]},
    "question": [{"id": "Q", "text": "?", "factors": ["cell"], "responses": ["latency_p50_us"]}],
    "answers": {"best_of": ["cell"], "baseline": {"cell": "base"}},
}
AT_8_B_US = {"base": 10.0, "slow": 500.0, "slowest": 10_000.0}


def large_ratios(folder):
    """Return a campaign whose slowest cell has only the smallest, fastest payload."""
    treatments = [
        {"cell": cell, "payload_bytes": size}
        for cell in AT_8_B_US
        for size in (8, 64, 1024)
        if cell != "slowest" or size == 8
    ]
    return planted(
        folder, LARGE, treatments, lambda t: AT_8_B_US[t["cell"]] * t["payload_bytes"] / 8
    )


def test_the_means_of_a_large_ratio_are_those_of_the_common_treatments(tmp_path):
    evidence = large_ratios(tmp_path / "c")
    for answer in answer_all(evidence).items:
        stated = statement(evidence, answer, 1)
        quotient = stated.level_mean / stated.baseline_mean
        assert quotient == pytest.approx(answer.interval.estimate, rel=0.01)
        assert ANSWERS.claim(stated).endswith(" µs)")
    assert stated.baseline_mean == pytest.approx(10.0, rel=0.05)


def test_a_mean_over_several_treatments_is_named_as_such(tmp_path):
    evidence = large_ratios(tmp_path / "c")
    result = ranking(evidence, answer_all(evidence))
    assert {at.title: at.treatments for at in result.choices[0].placed} == {
        "base": 3,
        "slow": 3,
        "slowest": 1,
    }
    assert result.headline is not None
    assert "µs on average over 3 treatments" in RANKING.headline(result.headline)
    ((ranked,),) = (question.responses for question in result.questions)
    assert "(geometric mean over 3 treatments)" in RANKING.sentence(ranked)


def test_the_largest_ratio_to_the_lowest_is_that_of_the_farthest_alternative(tmp_path):
    evidence = large_ratios(tmp_path / "c")
    (choice,) = ranking(evidence, answer_all(evidence)).choices
    (placed, *others) = [replace(at, group="higher") for at in choice.placed]
    nearest, farthest = sorted(others, key=lambda at: at.over_lowest)
    swapped = replace(choice, placed=(replace(placed, group="lowest"), farthest, nearest))
    assert swapped.farthest.over_lowest == pytest.approx(1000, rel=0.05)
    assert (swapped.farthest.title, swapped.nearest.title) == ("slowest", "slow")


def test_an_empty_level_has_a_name():
    assert level_title("settings.fault_proxy", "", {}) == "fault proxy not set"
    assert level_title("settings.x", "", {"settings.x": {"": "plain"}}) == "plain"


def test_messages_too_short_for_their_send_time_are_named_in_the_first_lines(tmp_path):
    fixed = {"middleware": "loopback", "payload_bytes": 5}
    path = write_campaign(tmp_path / "c", Shape(patterns=TOPICS, study={"fixed": fixed}))
    plan = [entry | {"levels": entry["treatment"] | fixed} for entry in _plan_of(path)]
    (path / "plan.json").write_text(json.dumps(plan))
    for run in (path / "runs").iterdir():
        document = json.loads((run / "run.json").read_text())
        levels = document["treatment"] | fixed
        (run / "run.json").write_text(json.dumps(document | {"levels": levels}))
    evidence = gather(Campaign(path))
    reason = only(headline(evidence, answer_all(evidence)), "not_compared.without_send_time")
    assert "5 B" in reason.values["reason"]
    long_enough = evidence_of(tmp_path / "d", Shape(patterns=TOPICS))
    assert not phrases_in(
        headline(long_enough, answer_all(long_enough)), "not_compared.without_send_time"
    )


def _plan_of(path):
    plan = json.loads((path / "plan.json").read_text())
    return plan if isinstance(plan, list) else plan["runs"]


def test_a_factor_that_no_question_names_is_named_with_its_levels(tmp_path):
    shape = Shape(patterns=("topic", "service"))
    evidence = evidence_of(tmp_path / "c", shape)
    study = answered_study(evidence, answer_all(evidence))
    assert study.averaged == (Averaged("pattern", ("topic", "service")),)
    evidence = evidence_of(tmp_path / "d")
    assert answered_study(evidence, answer_all(evidence)).averaged == ()


FEW_FACTORS = {"blocks": 4, "patterns": ("topic",), "intervals_s": (0.05,), "clients": (1,)}


def test_a_saturated_treatment_is_named_first_and_is_in_no_ratio_of_latency_or_cost(tmp_path):
    responses = ["latency_p50_us", "cpu_us_per_message"]
    question = {"id": "Q", "text": "?", "factors": ["language"], "responses": responses}
    campaign = write_campaign(tmp_path / "c", Shape(**FEW_FACTORS, study={"question": [question]}))
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
    campaign = write_campaign(tmp_path / "c", Shape(**FEW_FACTORS, study={"question": questions}))
    saturate(campaign, 4)
    evidence = gather(Campaign(campaign))
    (sentence,) = unanswered.questions(evidence, answer_all(evidence))
    assert sentence.values["responses"] == ("median latency", "CPU time per message")
    assert sentence.values["question"].values == {"questions": ("A", "B")}
