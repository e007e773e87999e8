"""Test what the headline states of alternatives: a winner only if it wins in all responses."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.responses import resolve
from wattwire.analysis.topics.ranking.choice import Choice, Placed
from wattwire.analysis.topics.ranking.headline_clause import Headline, Shares, wins_all
from wattwire.analysis.topics.ranking.numbers import ranking
from wattwire.report.tests.planted import planted_responses
from wattwire.report.topic_page import Sentences

CPU, LOSS, RATE = "cpu_us_per_message", "loss_share", "rate_hz_delivered"
SENTENCES = Sentences("ranking")


def headline(folder: Path, values: dict[str, dict[str, float]]) -> Headline:
    """Return the headline of a campaign of languages with these values per response."""
    evidence = planted_responses(folder / "c", values, best_of=True)
    result = ranking(evidence, answer_all(evidence)).headline
    assert result is not None
    return result


def leaders(result: Headline) -> list[str]:
    """Return the best alternative in each ranked response, once if it is the same in the next."""
    return [
        clause.choice.leader
        for clause in result.clauses
        if clause.choice and not clause.is_same_leader
    ]


def test_no_alternative_is_called_best_if_another_wins_in_a_response(tmp_path) -> None:
    result = headline(tmp_path, {CPU: {"cpp": 90.0, "go": 60.0, "rust": 20.0}})
    assert (result.has_winner, result.responses) == (False, 2)
    assert leaders(result) == ["cpp", "rust"]
    words = SENTENCES.headline(result)
    assert " of 3 alternatives, none is the best in all 2 responses: cpp had the lowest " in words
    assert ") and rust had the lowest CPU time per message (" in words


def test_an_alternative_that_wins_in_all_responses_is_named_alone(tmp_path) -> None:
    result = headline(tmp_path, {CPU: {"cpp": 9.0, "go": 60.0}})
    assert result.has_winner and not result.is_reversed
    assert leaders(result) == ["cpp"]
    assert ") and the lowest CPU time per message (" in SENTENCES.headline(result)


def test_the_fastest_alternative_that_loses_messages_is_not_the_best(tmp_path) -> None:
    result = headline(tmp_path, {LOSS: {"cpp": 0.5, "go": 0.0}})
    assert (result.has_winner, result.responses) == (False, 2)
    shares = result.clauses[-1].shares
    assert shares is not None
    assert (shares.best, shares.worst, shares.highest) == (("go",), "cpp", 0.5)
    words = SENTENCES.headline(result)
    assert words.endswith(
        "and the lowest mean share of messages lost is 0 % (go) and the highest 50 % (cpp)."
    )


def test_the_highest_delivered_rate_is_the_best(tmp_path) -> None:
    result = headline(tmp_path, {RATE: {"cpp": 100.0, "go": 300.0}})
    choice = result.clauses[-1].choice
    assert choice is not None and choice.response.column == RATE
    assert [placed.title for placed in choice.placed] == ["go", "cpp"]
    assert choice.placed[1].over_lowest == pytest.approx(3, rel=0.05)
    assert SENTENCES.extreme(choice.response) == "highest"
    assert "; lower by a factor of: cpp " in SENTENCES.headline(result)


@pytest.mark.parametrize(("group", "wins"), [("equal", True), ("open", False), ("higher", False)])
def test_a_response_in_which_the_leader_is_equivalent_to_the_best_is_no_defeat(group, wins):
    """In an open loop, all alternatives deliver the offered rate, and noise orders them."""
    latency = Choice(resolve(CPU), (placed("rust", "lowest"), placed("go", "higher")))
    rate = Choice(resolve(CPU), (placed("python", "lowest"), placed("rust", group)))
    assert wins_all([latency, rate], []) == wins
    assert not wins_all([latency, rate], [Shares(resolve(LOSS), {"rust": 0.1, "go": 0.0})])


def placed(title: str, group: str, over_lowest: float = 1.0) -> Placed:
    return Placed(title, (title,), 1.0, over_lowest, over_lowest, group, 1)


def test_more_alternatives_than_the_headline_names_have_the_range_of_their_ratios():
    worse = [placed(f"w{n}", "higher", 1.0 + n) for n in range(1, 8)]
    choice = Choice(resolve(CPU), (placed("best", "lowest"), *worse))
    result = Headline((), (), 8, True, False, 6, None)
    words = SENTENCES.compared(choice, result)
    assert words == "1.00 µs; all others: higher by a factor of 2.00 to 8.00"
    near = Choice(resolve(CPU), (placed("best", "lowest"), placed("near", "open"), *worse))
    assert SENTENCES.compared(near, result) == (
        "1.00 µs; not significantly higher: near; 7 others: higher by a factor of 2.00 to 8.00"
    )
    none_equal = Headline((), (), 8, True, False, 6, 0.1)
    assert SENTENCES.compared(choice, none_equal) == (
        "1.00 µs; equivalent within 10 %: none; 7 others: higher by a factor of 2.00 to 8.00"
    )
