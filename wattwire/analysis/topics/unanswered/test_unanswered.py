"""Test the page's first lines on treatments and questions without an answer."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.answering.baselines import baseline_of, planned_baseline
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.document import document
from wattwire.analysis.topics.answers.nothing import ended
from wattwire.analysis.topics.answers.numbers import Averaged
from wattwire.analysis.topics.answers.statements import statement
from wattwire.analysis.topics.design.numbers import FactorOfQuestion, design
from wattwire.analysis.topics.ranking.numbers import ranking
from wattwire.analysis.topics.unanswered.cautions import uncompared
from wattwire.analysis.topics.unanswered.numbers import Unanswered, unanswered
from wattwire.analysis.topics.unanswered.open_questions import Requested
from wattwire.analysis.topics.unanswered.treatments import Cause, Missing
from wattwire.model.words import level_title, listed, percent
from wattwire.report.headline import questions_without_answer
from wattwire.report.tests.answered import answered_study, headline, page_headline
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
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

TOPICS = ("topic",)
ANSWERS, RANKING = Sentences("answers"), Sentences("ranking")
SENTENCES = Sentences("unanswered")


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
    result = of(evidence)
    causes = (Cause("other_load", 12, 12), Cause("stall", 4, 12))
    assert result.treatments == (Missing(("Python",), causes),)
    sentence = "machine busy in 12 of 12 runs and machine stalled in 4 of 12 runs"
    text = f"No answer for Python: {sentence}."
    assert text in page_headline(evidence, answer_all(evidence))
    (row,) = table_of(result).rows
    assert row == {"name": "Python", "what": "no answer", "reason": sentence}


def of(evidence) -> Unanswered:
    return unanswered(evidence, answer_all(evidence))


def table_of(result):
    """Return the table of treatments without an answer, or None if there are none."""
    return next((part for _, part in topic_page("unanswered", result).parts), None)


def lines_of(evidence) -> list[str]:
    """Return the lines on questions without an answer."""
    return questions_without_answer(document(evidence))


def test_what_was_left_out_is_named_apart_and_what_the_study_excludes_is_not(tmp_path):
    shape = Shape(patterns=TOPICS, skip={"language": SLOW, "clients": 2})
    evidence = evidence_of(tmp_path / "c", shape)
    (skipped,) = of(evidence).treatments
    assert skipped.names == ("Python, 0.05 s, 2 clients", "Python, 0.2 s, 2 clients")
    assert skipped.is_skipped and skipped.reason == "the cell has no such capability"
    assert SENTENCES.missing(skipped).startswith("Skipped Python, 0.05 s, 2 clients and Python, ")
    own = {"exclude": {"treatments": [{"language": SLOW, "clients": 2, "because": "why not"}]}}
    evidence = evidence_of(tmp_path / "d", shape, study=own)
    assert of(evidence).treatments == () and table_of(Unanswered()) is None


def test_many_are_counted_in_the_headline_and_stand_in_the_table(tmp_path):
    names = tuple(f"cell {at}" for at in range(9))
    first = Missing(("a",), (Cause("why", 1, 2),))
    result = Unanswered((first, Missing(names, reason="other")))
    assert (result.named, result.more) == ((first,), 9)
    assert SENTENCES.missing(first) == "No answer for a: why in 1 of 2 runs."
    assert SENTENCES.more_treatments(result) == (
        "9 more treatments have no answer; see “Without an answer”."
    )
    others = Unanswered(result.treatments[1:])
    assert SENTENCES.more_treatments(others).startswith("9 treatments have no answer; ")
    assert len(table_of(result).rows) == 10


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
    result = of(evidence)
    exact, unmeasured = result.gaps
    assert (exact.questions, exact.responses) == (("Q1",), ("memory per node",))
    assert exact.is_measured and "0.488 without scatter" in exact.reasons[0]
    assert unmeasured.questions == ("Q2",) and not unmeasured.is_measured
    assert "no meter measured energy" in unmeasured.reasons[0]
    of_exact, of_unmeasured = lines_of(evidence)
    assert of_exact.startswith("No interval for question Q1 in memory per node: ")
    assert of_unmeasured.startswith("No answer to question Q2 in ")
    ((place, line), *_) = topic_page("unanswered", result).lines
    assert (place, line) == ((30,), f"{of_exact} {of_unmeasured}")


def test_an_answer_that_got_lost_stands_before_everything(tmp_path):
    asked = {"id": "Q9", "factors": ["settings.gone"], "responses": ["latency_p50_us"]}
    evidence = evidence_of(tmp_path / "c", study={"question": [asked]})
    answers = answer_all(evidence)
    text = page_headline(evidence, answers)
    assert of(evidence).lost == (Requested("Q9", "median latency", "gone"),)
    assert text.startswith(
        "This page lacks requested answers and gives no reason (question Q9: median latency by "
        "gone). "
    )
    held = {"question": [asked], "fixed": {"settings.gone": 1}}
    evidence = evidence_of(tmp_path / "d", study=held)
    assert of(evidence).lost == ()


def test_a_factor_that_is_held_at_one_level_is_named_wherever_it_is_held(tmp_path):
    asked = {"id": "Q1", "factors": ["settings.depth", "language"], "responses": ["cpu"]}
    document = {"question": [asked], "fixed": {"settings.depth": 5}}
    evidence = evidence_of(tmp_path / "c", study=document)
    (held,) = of(evidence).held
    assert (held.question, held.factor, held.is_only) == ("Q1", "settings.depth", False)
    assert "one level here (5)" in held.reason
    assert SENTENCES.held(held).startswith("No answer to question Q1 about settings.depth: ")
    (asked,) = design(evidence).questions
    assert asked.factors == (FactorOfQuestion("depth", "5"), FactorOfQuestion("language"))
    document["factors"] = {"settings.depth": [5], "language": [FAST, SLOW]}
    evidence = evidence_of(tmp_path / "d", study=document)
    assert of(evidence).held == (held,)


def test_questions_whose_factors_are_all_held_do_not_ask_for_no_comparison(tmp_path):
    asked = {"id": "Q1", "factors": ["settings.depth"], "responses": ["cpu"]}
    evidence = evidence_of(
        tmp_path / "c", study={"question": [asked], "fixed": {"settings.depth": 5}}
    )
    text = page_headline(evidence, answer_all(evidence))
    assert text == (
        "24 runs were measured, but each factor that a question names has one level (depth 5), and "
        f"no question names {listed(evidence.varied)}. Add a [[question]] with factors = "
        f"{json.dumps(evidence.varied)}."
    )
    assert len(evidence.varied) > 1


def test_without_a_question_the_factors_that_one_could_name_are_stated(tmp_path):
    evidence = evidence_of(tmp_path / "c", study={"question": []})
    text = page_headline(evidence, answer_all(evidence))
    assert text.startswith("24 runs were measured, but the study requests no comparison, as no ")
    assert f"factors = {json.dumps(evidence.varied)}." in text


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
    assert unanswered(evidence, answers).gaps == ()


def test_no_loss_at_all_is_said_and_is_no_missing_answer(tmp_path):
    evidence = evidence_of(tmp_path / "c", study=LOSS)
    answers = answer_all(evidence)
    assert str(answers.items[0].result) == "none in any of 24 runs"
    assert unanswered(evidence, answers).gaps == ()


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
    (item,) = (item for item in uncompared(evidence, []) if item.is_send_time)
    assert "5 B" in item.reason
    assert SENTENCES.uncompared(item) == f"No latency: {item.reason}."
    assert SENTENCES.uncompared(item) in headline(evidence, answer_all(evidence))
    long_enough = evidence_of(tmp_path / "d", Shape(patterns=TOPICS))
    assert not [item for item in uncompared(long_enough, []) if item.is_send_time]


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
    (gap,) = of(evidence).gaps
    assert gap.responses == ("median latency", "CPU time per message")
    assert gap.questions == ("A", "B")
    assert SENTENCES.gap(gap).startswith("No interval for questions A and B in median latency and ")
