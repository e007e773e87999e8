"""Tests of the headline on several responses: a winner only if it wins in all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.best_alternative import Choice, Placed, choices
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import resolve
from wattwire.report.tests.phrase_search import only, phrases_in
from wattwire.report.tests.planted import planted
from wattwire.report.words.answers import claim, headline
from wattwire.report.words.headlines.best_headline import _wins_all

CPU, WIRE = "cpu_us_per_message", "wire_bytes_per_message"
LOSS, RATE = "loss_share", "rate_hz_delivered"


def measured(
    folder: Path, values: dict[str, dict[str, float]], best_of: bool = False
) -> tuple[Evidence, Answers]:
    """Return a campaign of languages with these values per response, with 1 % scatter.

    Values of 0 and shares do not scatter. The median latency is 10 µs for the first language, and
    30 µs for the others.
    """
    languages = list(next(iter(values.values())))
    document: dict[str, Any] = {
        "factors": {"language": languages},
        "answers": {"best_of": ["language"]} if best_of else {},
        "question": [
            {
                "id": "Q",
                "text": "?",
                "factors": ["language"],
                "responses": ["latency_p50_us", *values],
            }
        ],
    }
    evidence = planted(
        folder / "c",
        document,
        [{"language": language} for language in languages],
        lambda treatment: 10.0 if treatment["language"] == languages[0] else 30.0,
    )
    rng = np.random.default_rng(5)
    frame = evidence.usable
    for name, by_language in values.items():
        scatter = 0.0 if name == LOSS else 0.01
        column = [
            by_language[language[0] if isinstance(language, list) else language]
            * rng.normal(1.0, scatter)
            for language in frame["factor.language"].to_list()
        ]
        frame = frame.with_columns(pl.Series(name, column))
    evidence.usable = frame
    return evidence, answer_all(evidence)


def test_a_level_that_is_better_in_all_responses_is_the_winner(tmp_path) -> None:
    text = headline(*measured(tmp_path, {CPU: {"cpp": 20.0, "python": 90.0}}))
    assert only(text, "headline.winner").values == {
        "winner": "cpp", "loser": "python", "responses": 2,
    }  # fmt: skip


def test_without_a_winner_in_all_responses_each_response_names_its_better_level(tmp_path) -> None:
    values = {CPU: {"cpp": 90.0, "python": 20.0}, WIRE: {"cpp": 5.0, "python": 5.0}}
    text = headline(*measured(tmp_path, values))
    assert phrases_in(text, "headline.winner") == []
    assert only(text, "headline.none").values["responses"] == 3
    better = {one.values["title"]: one.values["responses"] for one in
              phrases_in(text, "headline.better")}  # fmt: skip
    assert better == {"cpp": ["median latency"], "python": ["CPU time per message"]}
    assert only(text, "headline.undecided").values["responses"] == ["bytes on the wire per message"]


@pytest.mark.parametrize("latencies", [(30.0, 20.0, 10.0), (10.0, 40.0, 20.0)])
def test_of_several_levels_the_best_is_in_the_headline_and_not_the_first(
    tmp_path, latencies
) -> None:
    of = dict(zip(("cpp", "go", "rust"), latencies, strict=True))
    document = {
        "factors": {"language": list(of)},
        "question": [
            {"id": "Q", "text": "?", "factors": ["language"], "responses": ["latency_p50_us"]}
        ],
    }
    treatments = [{"language": language} for language in of]
    evidence = planted(tmp_path / "c", document, treatments, lambda at: of[at["language"]])
    ratio = only(headline(evidence, answer_all(evidence)), "answer.ratio").values
    # The best against the baseline, or the next best against the best, which is the baseline.
    assert {ratio["level"], ratio["baseline"]} == {"cpp", "rust"}


def test_a_response_that_depends_on_another_factor_is_named_as_such(tmp_path) -> None:
    evidence, answers = measured(tmp_path, {CPU: {"cpp": 20.0, "python": 90.0}})
    cpu = next(item for item in answers.items if item.response.column == CPU)
    text = headline(evidence, replace(answers, dependent={cpu.key: "clients"}))
    assert only(text, "headline.depends").values["responses"] == ["CPU time per message"]
    assert phrases_in(text, "headline.undecided") == []


def test_a_response_within_the_noise_is_named_as_such_and_follows_what_is_decided(tmp_path) -> None:
    evidence, answers = measured(tmp_path, {CPU: {"cpp": 20.0, "python": 90.0}})
    cpu = next(item for item in answers.items if item.response.column == CPU)
    (latency,) = {item.response for item in answers.items} - {cpu.response}
    text = headline(evidence, replace(answers, noise={latency.column: 9.0}))
    assert only(text, "headline.within_noise").values["responses"] == [latency.title]
    assert phrases_in(text, "headline.undecided") == []
    # The sentence with a number is about the response that has an answer.
    assert only(text, "answer.ratio").values["response"] == cpu.response.title
    assert phrases_in(text, "answer.within_noise") == []


def test_a_response_of_which_more_is_better_counts_for_the_higher_level(tmp_path) -> None:
    text = headline(*measured(tmp_path, {RATE: {"cpp": 100.0, "python": 300.0}}))
    better = phrases_in(text, "headline.better")
    assert {one.values["title"] for one in better} == {"cpp", "python"}


def test_deterministic_loss_is_in_the_first_sentence_with_its_blocks(tmp_path) -> None:
    evidence, answers = measured(tmp_path, {LOSS: {"cpp": 1 / 12, "python": 0.0}})
    loss = next(item.result for item in answers.items if item.response.column == LOSS)
    assert isinstance(loss, stats.Exact)
    assert (loss.level, loss.baseline, loss.blocks) == (0.0, pytest.approx(1 / 12), 5)
    text = headline(evidence, answers)
    assert "8.3 % in all 5 blocks" in only(text, "headline.exact").values["reason"].reason
    assert only(text, "headline.none").values["responses"] == 2


def test_two_sides_without_any_loss_have_no_contrast_and_are_not_in_the_family(tmp_path) -> None:
    # The third language loses a varying share, from which a pooled error would come.
    evidence, _ = measured(tmp_path, {LOSS: {"cpp": 0.0, "python": 0.0, "rust": 0.1}})
    share = evidence.usable[LOSS].to_numpy() * np.linspace(0.5, 1.5, evidence.usable.height)
    evidence.usable = evidence.usable.with_columns(pl.Series(LOSS, share))
    evidence.fits.clear()
    answers = answer_all(evidence)
    results = {item.level: item.result for item in answers.items if item.response.column == LOSS}
    assert isinstance(results["python"], stats.Exact) and results["python"].level == 0
    assert isinstance(results["rust"], stats.Difference)
    assert answers.family == 3  # two ratios of latency, and the loss of one language


def test_no_alternative_is_called_best_if_another_wins_in_a_response(tmp_path) -> None:
    evidence, answers = measured(
        tmp_path, {CPU: {"cpp": 90.0, "go": 60.0, "rust": 20.0}}, best_of=True
    )
    text = only(headline(evidence, answers), "best_headline.headline")
    assert only(text, "best_headline.no_winner").values == {"responses": 2}
    leaders = phrases_in(text, "best_headline.leader")
    assert [one.values["leader"] for one in leaders] == ["cpp", "rust"]


def test_an_alternative_that_wins_in_all_responses_is_named_alone(tmp_path) -> None:
    evidence, answers = measured(tmp_path, {CPU: {"cpp": 9.0, "go": 60.0}}, best_of=True)
    text = headline(evidence, answers)
    assert phrases_in(text, "best_headline.no_winner") == []
    assert [one.values["leader"] for one in phrases_in(text, "best_headline.leader")] == ["cpp"]


def test_the_fastest_alternative_that_loses_messages_is_not_the_best(tmp_path) -> None:
    evidence, answers = measured(tmp_path, {LOSS: {"cpp": 0.5, "go": 0.0}}, best_of=True)
    text = headline(evidence, answers)
    assert only(text, "best_headline.no_winner").values == {"responses": 2}
    shares = only(text, "best_headline.shares").values
    assert (shares["titles"], shares["title"], shares["highest"]) == (["go"], "cpp", 0.5)


def test_the_highest_delivered_rate_is_the_best(tmp_path) -> None:
    evidence, answers = measured(tmp_path, {RATE: {"cpp": 100.0, "go": 300.0}}, best_of=True)
    rate = next(one for one in choices(evidence, answers) if one.response.column == RATE)
    assert [placed.title for placed in rate.placed] == ["go", "cpp"]
    assert rate.placed[1].over_lowest == pytest.approx(3, rel=0.05)
    leader = phrases_in(headline(evidence, answers), "best_headline.leader")[-1]
    assert leader.values["leader"] == "go"
    assert leader.values["extreme"].key == "best.highest_value"


def pipeline(folder: Path) -> tuple[Evidence, Answers]:
    """Return a campaign with 50 µs per node, four times as much for the large payload."""
    document = {
        "factors": {"nodes": [3, 6, 10], "payload_bytes": [64, 4096]},
        "fixed": {"middleware": "loopback", "language": "cpp", "pattern": "pipeline"},
        "plan": {"blocks": 5, "primary": "nodes"},
        "question": [
            {"id": "N", "text": "?", "factors": ["nodes"], "responses": ["latency_p50_us"]},
            {"id": "P", "text": "?", "factors": ["payload_bytes"], "responses": ["latency_p50_us"]},
        ],
    }
    treatments = [
        {"nodes": nodes, "payload_bytes": size} for nodes in (3, 6, 10) for size in (64, 4096)
    ]
    evidence = planted(
        folder / "c",
        document,
        treatments,
        lambda at: 50.0 * at["nodes"] * (4 if at["payload_bytes"] == 4096 else 1),
    )
    return evidence, answer_all(evidence)


def test_a_pipeline_names_its_extremes_the_slope_per_node_and_the_payload(tmp_path) -> None:
    text = headline(*pipeline(tmp_path))
    extremes = only(text, "answer.ratio").values
    assert (extremes["level"], extremes["baseline"]) == ("10 nodes", "3 nodes")
    slope = only(text, "headline.slope").values
    assert (slope["step"], slope["response"]) == ("node", "median latency")
    assert only(text, "headline.averaged").values["factors"] == ["payload"]
    # The mean over both payloads grows by 125 µs per node.
    assert slope["slope"].low < 125 < slope["slope"].high
    payload = only(text, "headline.other_factor").values
    assert payload["level"] == "4096 B" and payload["ratio"] == pytest.approx(4, rel=0.05)


def test_percentage_points_of_an_imported_percentage_are_not_percent(tmp_path) -> None:
    evidence, answers = measured(tmp_path, {LOSS: {"cpp": 0.2, "python": 0.1}})
    first = next(item for item in answers.items if item.response.column == "latency_p50_us")
    percent = replace(first.response, column="lost_pct", title="lost pct", unit="%")
    interval = stats.Interval(1.47, 0.5, 2.4, 0.95, 5, "t")
    difference = stats.Difference("language", "python", "cpp", interval, 1, 10, 5, "treatments")
    text = claim(evidence, replace(first, response=percent, result=difference), 1)
    assert only(text, "answer.difference").values["unit"].key == "answer.percentage_points"


def test_a_loss_that_never_occurred_is_a_result(tmp_path) -> None:
    values = {CPU: {"cpp": 20.0, "python": 90.0}, LOSS: {"cpp": 0.0, "python": 0.0}}
    text = headline(*measured(tmp_path, values))
    assert only(text, "headline.winner").values["responses"] == 2
    assert phrases_in(text, "headline.unknown") == []
    undecided = {CPU: {"cpp": 90.0, "python": 20.0}, LOSS: {"cpp": 0.0, "python": 0.0}}
    text = headline(*measured(tmp_path / "undecided", undecided))
    assert only(text, "headline.never").values["responses"] == ["share of messages lost"]


@pytest.mark.parametrize(("group", "wins"), [("equal", True), ("open", False), ("higher", False)])
def test_a_response_in_which_the_leader_is_equivalent_to_the_best_is_no_defeat(group, wins):
    """In an open loop, all alternatives deliver the offered rate, and noise orders them."""

    def placed(title, group):
        return Placed(title, (title,), 1.0, 1.0, 1.0, group, 1)

    latency = Choice(resolve(CPU), (placed("rust", "lowest"), placed("go", "higher")))
    rate = Choice(resolve(CPU), (placed("python", "lowest"), placed("rust", group)))
    assert _wins_all([latency, rate], {}) == wins
    shares = {resolve(LOSS): {"rust": 0.1, "go": 0.0}}
    assert not _wins_all([latency, rate], shares)
