"""Test what a question states of the best alternative, and of the best level of each factor."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather, levels_in
from wattwire.analysis.topics.ranking.numbers import RankedQuestion, Wins, ranking
from wattwire.model.verdict import Outcome
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.report.topic_page import Sentences
from wattwire.store import Campaign

SENTENCES = Sentences("ranking")

QUESTION = {"id": "Q1", "text": "Which?", "factors": ["language", "clients"],
            "responses": ["cpu_us_per_message"]}  # fmt: skip
COSTS = {(FAST, 1): 10.0, (SLOW, 1): 40.0, (FAST, 2): 30.0, (SLOW, 2): 20.0}


def questions(
    folder, question=None, best_of=("language", "clients"), saturated_us=None, **shape
) -> tuple[RankedQuestion, ...]:
    """Return the questions of a campaign with COSTS.

    With `saturated_us`, the first run of the lowest alternative is saturated and has this cost.
    """
    study = {"question": [QUESTION], "answers": {"best_of": list(best_of)}}
    made = Shape(**{"blocks": 4, "duration_s": 2.0, "patterns": ("topic",),
                    "intervals_s": (0.2,), "study": study, **shape})  # fmt: skip
    evidence = gather(Campaign(write_campaign(folder / "campaign", made)))
    frame = evidence.usable
    keys = levels_in(frame, ("language", "clients"))
    values = [
        COSTS[key] * (1.01 if (at + block) % 2 else 1.0)
        for at, (key, block) in enumerate(zip(keys, frame["block"].to_list(), strict=True))
    ]
    outcomes = frame["outcome"].to_list()
    if saturated_us is not None:
        run = keys.index((FAST, 1))
        values[run], outcomes[run] = saturated_us, Outcome.SATURATED.value
    evidence.usable = frame.with_columns(
        pl.Series("cpu_us_per_message", values), pl.Series("outcome", outcomes)
    )
    answers = answer_all(evidence)
    (own,) = evidence.study.questions
    # The first question requests the ranking, and the second one does so only with its own factors.
    asked = (own, replace(own, **(question or {})))
    result = ranking(replace(evidence, study=replace(evidence.study, questions=asked)), answers)
    return result.questions


def levels_won(wins: Wins) -> dict[str, int]:
    """Return the number of levels of the other factor at which each level is lowest."""
    return {winner.title: winner.levels for winner in wins.winners}


def test_the_lowest_is_named_with_its_value_and_how_far_the_others_lie_above(tmp_path) -> None:
    ranked = questions(tmp_path)[0].responses[0]
    choice = ranked.choice
    assert (choice.leader, choice.best.treatments) == ("Swift 1 client", 1)
    assert choice.response.title == "CPU time per message"
    assert choice.best.typical == pytest.approx(10, rel=0.05)
    assert len(choice.higher) == 3 and choice.farthest.title == "Python 1 client"
    assert choice.nearest.over_lowest == pytest.approx(2, rel=0.05)
    assert choice.farthest.over_lowest <= choice.farthest.at_most < 5
    words = SENTENCES.sentence(ranked)
    assert words.startswith("Swift 1 client has the lowest CPU time per message: ")
    assert " µs (geometric mean). 3 alternatives are significantly higher, by a factor of " in words
    # Swift is lower with one client, Python with two.
    by_clients, by_language = ranked.wins
    assert (by_clients.factor_title, by_language.factor_title) == ("clients", "language")
    assert levels_won(by_clients) == {"Swift": 1, "Python": 1}
    assert levels_won(by_language) == {"1 client": 1, "2 clients": 1}
    assert SENTENCES.wins(choice, by_clients) == (
        "Lowest observed CPU time per message at each of the 2 levels of clients: "
        "Swift at 1 level and Python at 1 level."
    )


def test_a_single_saturated_run_is_not_in_the_means_of_the_lowest_observed(tmp_path) -> None:
    # With this run, the geometric mean of Swift with 1 client would be 32 µs, above 20 µs.
    ranked = questions(tmp_path, saturated_us=1000.0)[0].responses[0]
    assert ranked.lowest.title == ranked.choice.leader == "Swift 1 client"
    assert ranked.lowest.value == pytest.approx(10, rel=0.05)
    assert levels_won(ranked.wins[0]) == {"Swift": 1, "Python": 1}


def test_one_block_tells_what_was_seen_and_why_it_is_no_answer(tmp_path) -> None:
    ranked = questions(tmp_path, blocks=1)[0].responses[0]
    assert not ranked.choice.placed and ranked.alternatives == 4
    assert ranked.lowest.title == "Swift 1 client"
    assert ranked.highest.title == "Python 1 client"
    assert ranked.choice.why_not.startswith("there is only 1 block")
    assert "The 4 alternatives cannot be ranked yet: there is only 1 block" in SENTENCES.sentence(
        ranked
    )


def test_a_question_of_other_factors_is_not_told(tmp_path) -> None:
    assert [question.number for question in questions(tmp_path)] == [1, 2]
    others = questions(tmp_path / "others", {"factors": ("language",)})
    assert [question.number for question in others] == [1]


def test_a_question_of_another_response_is_not_told_this_one(tmp_path) -> None:
    first, second = questions(tmp_path, {"responses": ("memory_kib",)})
    cpu = "cpu_us_per_message"
    assert cpu in [ranked.choice.response.column for ranked in first.responses]
    assert cpu not in [ranked.choice.response.column for ranked in second.responses]


def test_a_study_without_alternatives_has_no_such_sentence(tmp_path) -> None:
    assert questions(tmp_path, best_of=()) == ()
