"""Test the headline on several responses: a winner only if it wins in all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.topics.answers.headline_clause import First
from wattwire.analysis.topics.answers.statements import statement
from wattwire.analysis.topics.answers.winner import Winner
from wattwire.report.tests.answered import answered_study, headline
from wattwire.report.tests.planted import planted, planted_responses
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import Sentences
from wattwire.store import Campaign

CPU, WIRE = "cpu_us_per_message", "wire_bytes_per_message"
LOSS, RATE = "loss_share", "rate_hz_delivered"
SENTENCES = Sentences("answers")


def responses(folder: Path, values: dict[str, dict[str, float]]) -> tuple[Evidence, Answers]:
    """Return a campaign of languages with these values per response, and its answers."""
    evidence = planted_responses(folder / "c", values)
    return evidence, answer_all(evidence)


def first_of(evidence: Evidence, answers: Answers) -> First:
    """Return the answer of the headline, and check that the page's headline has its sentence."""
    first = answered_study(evidence, answers).headline.first
    assert first is not None
    assert SENTENCES.first(first) in headline(evidence, answers)
    return first


def winner_of(evidence: Evidence, answers: Answers) -> Winner:
    """Return the comparison of the headline, and check that the page's headline has its words."""
    winner = first_of(evidence, answers).winner
    assert winner is not None
    assert SENTENCES.winner(winner) in headline(evidence, answers)
    return winner


def groups_of(winner: Winner) -> dict[str, tuple[str, ...]]:
    """Return the responses of each group, by the better level or else by the group."""
    return {group.side or group.group: group.responses for group in winner.groups}


def test_a_level_that_is_better_in_all_responses_is_the_winner(tmp_path) -> None:
    winner = winner_of(*responses(tmp_path, {CPU: {"cpp": 20.0, "python": 90.0}}))
    assert (winner.winner, winner.loser, winner.groups) == ("cpp", "python", ())
    assert (winner.better, winner.responses) == (2, 2)
    assert SENTENCES.winner(winner) == "cpp is better than python in all 2 responses."


def test_without_a_winner_in_all_responses_each_response_names_its_better_level(tmp_path) -> None:
    values = {CPU: {"cpp": 90.0, "python": 20.0}, WIRE: {"cpp": 5.0, "python": 5.0}}
    winner = winner_of(*responses(tmp_path, values))
    assert (winner.winner, winner.has_better, winner.responses) == ("", True, 3)
    assert groups_of(winner) == {
        "cpp": ("median latency",),
        "python": ("CPU time per message",),
        "undecided": ("bytes on the wire per message",),
    }
    assert SENTENCES.winner(winner).endswith(
        " is better in all 3 responses (better by CPU time per message: python; better by median "
        "latency: cpp; no difference detected: bytes on the wire per message)."
    )


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
    stated = first_of(evidence, answer_all(evidence)).statement
    # The best against the baseline, or the next best against the best, which is the baseline.
    assert {stated.level_title, stated.baseline_title} == {"cpp", "rust"}


def test_a_response_that_depends_on_another_factor_is_named_as_such(tmp_path) -> None:
    evidence, answers = responses(tmp_path, {CPU: {"cpp": 20.0, "python": 90.0}})
    cpu = next(item for item in answers.items if item.response.column == CPU)
    winner = winner_of(evidence, replace(answers, dependent={cpu.key: "clients"}))
    groups = groups_of(winner)
    assert groups["depends"] == ("CPU time per message",) and "undecided" not in groups
    assert "dependent on another factor: CPU time per message" in SENTENCES.winner(winner)


def test_a_response_within_the_noise_is_named_as_such_and_follows_what_is_decided(tmp_path) -> None:
    evidence, answers = responses(tmp_path, {CPU: {"cpp": 20.0, "python": 90.0}})
    cpu = next(item for item in answers.items if item.response.column == CPU)
    (latency,) = {item.response for item in answers.items} - {cpu.response}
    answers = replace(answers, noise={latency.column: 9.0})
    groups = groups_of(winner_of(evidence, answers))
    assert groups["within noise"] == (latency.title,) and "undecided" not in groups
    # The sentence with a number is about the response that has an answer.
    first = first_of(evidence, answers)
    assert (first.statement.response, first.outcome) == (cpu.response, "different")


def test_a_response_of_which_more_is_better_counts_for_the_higher_level(tmp_path) -> None:
    winner = winner_of(*responses(tmp_path, {RATE: {"cpp": 100.0, "python": 300.0}}))
    assert groups_of(winner).keys() == {"cpp", "python"}


def test_deterministic_loss_is_in_the_first_sentence_with_its_blocks(tmp_path) -> None:
    evidence, answers = responses(tmp_path, {LOSS: {"cpp": 1 / 12, "python": 0.0}})
    loss = next(item.result for item in answers.items if item.response.column == LOSS)
    assert isinstance(loss, stats.Exact)
    assert (loss.level, loss.baseline, loss.blocks) == (0.0, pytest.approx(1 / 12), 5)
    first = first_of(evidence, answers)
    (exact,) = first.exact
    assert "8.3 % in all 5 blocks" in exact.reason
    assert SENTENCES.exact(exact) in headline(evidence, answers)
    assert first.winner is not None
    assert (first.winner.winner, first.winner.responses) == ("", 2)


def test_two_sides_without_any_loss_have_no_contrast_and_are_not_in_the_family(tmp_path) -> None:
    # The third language loses a varying share, from which a pooled error would come.
    evidence, _ = responses(tmp_path, {LOSS: {"cpp": 0.0, "python": 0.0, "rust": 0.1}})
    share = evidence.usable[LOSS].to_numpy() * np.linspace(0.5, 1.5, evidence.usable.height)
    evidence.usable = evidence.usable.with_columns(pl.Series(LOSS, share))
    evidence.fits.clear()
    answers = answer_all(evidence)
    results = {item.level: item.result for item in answers.items if item.response.column == LOSS}
    assert isinstance(results["python"], stats.Exact) and results["python"].level == 0
    assert isinstance(results["rust"], stats.Difference)
    assert answers.family == 3  # two ratios of latency, and the loss of one language


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
    evidence, answers = pipeline(tmp_path)
    first = first_of(evidence, answers)
    extremes, slope = first.statement, first.slope
    assert (extremes.level_title, extremes.baseline_title) == ("10 nodes", "3 nodes")
    assert slope is not None
    assert (slope.step, slope.response.title) == ("node", "median latency")
    assert slope.averaged == ("payload",)
    # The mean over both payloads grows by 125 µs per node.
    assert slope.line.slope.low < 125 < slope.line.slope.high
    (payload,) = first.ratios
    assert payload.level_title == "4096 B" and payload.ratio == pytest.approx(4, rel=0.05)
    text = headline(evidence, answers)
    assert SENTENCES.slope(slope).startswith("Each further node adds 12")
    assert "; mean over the levels of payload)" in SENTENCES.slope(slope)
    for sentence in (SENTENCES.slope(slope), SENTENCES.largest_ratio(payload)):
        assert sentence in text


def test_percentage_points_of_an_imported_percentage_are_not_percent(tmp_path) -> None:
    evidence, answers = responses(tmp_path, {LOSS: {"cpp": 0.2, "python": 0.1}})
    first = next(item for item in answers.items if item.response.column == "latency_p50_us")
    percent = replace(first.response, column="lost_pct", title="lost pct", unit="%")
    interval = stats.Interval(1.47, 0.5, 2.4, 0.95, 5, "t")
    difference = stats.Difference("language", "python", "cpp", interval, 1, 10, 5, "treatments")
    stated = statement(evidence, replace(first, response=percent, result=difference), 1)
    assert stated.is_in_points
    assert SENTENCES.claim(stated).startswith(
        "The lost pct is on average 1.47 percentage points higher for python than for cpp (95 % "
    )


def test_a_loss_that_never_occurred_is_a_result(tmp_path) -> None:
    values = {CPU: {"cpp": 20.0, "python": 90.0}, LOSS: {"cpp": 0.0, "python": 0.0}}
    winner = winner_of(*responses(tmp_path, values))
    assert (winner.winner, winner.better, winner.responses) == ("cpp", 2, 2)
    assert groups_of(winner) == {"never": ("share of messages lost",)}
    assert SENTENCES.winner(winner) == "cpp is better than python in all 2 responses."
    undecided = {CPU: {"cpp": 90.0, "python": 20.0}, LOSS: {"cpp": 0.0, "python": 0.0}}
    winner = winner_of(*responses(tmp_path / "undecided", undecided))
    assert groups_of(winner)["never"] == ("share of messages lost",)


def test_a_study_of_energy_alone_has_it_in_the_headline(tmp_path: Path) -> None:
    shape = Shape(
        blocks=5, patterns=("service",), clients=(1,), intervals_s=(0.5,), measured_energy=True
    )
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    (first, *_) = evidence.study.questions
    of_power = replace(first, factors=("language",), responses=("power_window_w",))
    evidence = replace(evidence, study=replace(evidence.study, questions=(of_power,)))
    words = headline(evidence, answer_all(evidence))
    assert "times the power in the window" in words
    assert "No question has a numeric answer" not in words
