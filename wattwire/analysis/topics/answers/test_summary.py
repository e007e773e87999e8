"""Test the summary of answers: its order, and the sides, estimate and outcome of each row."""

from __future__ import annotations

from typing import Any

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answer, Answers
from wattwire.analysis.responses import LATENCY_P50, response_of
from wattwire.analysis.topics.answers.tables import FEW, Short, shorts
from wattwire.report.topic_page import Sentences

SENTENCES = Sentences("answers")
LOSS = response_of("loss_share")
MARGIN = 0.05


def answer(estimate: float, low: float, high: float, **changes: Any) -> Answer:
    """Return the answer of B against A in the median latency, by default a ratio."""
    interval = stats.Interval(estimate, low, high, 0.95, 5, "t", changes.pop("degrees", 4.0))
    kind = changes.pop("kind", stats.Ratio)
    result = changes.pop("result", kind("language", "b", "a", interval, 1, 10, 5, "treatments"))
    response = changes.pop("response", LATENCY_P50)
    level = changes.pop("level", "b")
    question = changes.pop("question", "Q")
    return Answer(question, response, "language", level, "a", result, result, None, "B", "A")


def summary(*items: Answer) -> list[Short]:
    return shorts(Answers(items, len(items), 0.95, MARGIN, 5))


def texts(short: Short) -> tuple[str, str, str]:
    """Return the sides, the estimate and the outcome of a row."""
    return (
        SENTENCES.short_sides(short),
        SENTENCES.short_estimate(short),
        SENTENCES.short_outcome(short),
    )


def test_decided_answers_come_first_and_among_them_the_largest_effect_either_way():
    rows = summary(
        answer(1.01, 0.9, 1.2), answer(2.0, 1.8, 2.2), answer(0.2, 0.18, 0.22),
        answer(1.0, 0.99, 1.01),
    )  # fmt: skip
    assert [texts(row)[1].split()[0] for row in rows] == ["5.00", "2.00", "1.00", "1.01"]
    assert [row.outcome for row in rows][-2:] == ["equivalent", "undecided"]
    assert [texts(row)[2] for row in rows][-2:] == ["equivalent", "no difference detected"]


def test_the_larger_side_of_a_ratio_stands_first_as_in_sentences():
    (row,) = summary(answer(0.5, 0.4, 0.625))
    assert texts(row)[:2] == ("A / B", "2.00 [1.60, 2.50]")
    (row,) = summary(answer(0.5, 0.4, 1.25))
    assert texts(row)[:2] == ("A / B", "2.00 [0.800, 2.50]")
    (row,) = summary(answer(0.5, 0.0, 1.25))
    assert texts(row)[0] == "B / A", "its inverse would have no upper limit"


def test_an_answer_to_two_questions_has_one_row():
    first, second = (answer(2.0, 1.8, 2.2, question=question) for question in ("Q1", "Q2"))
    assert summary(first, second, answer(3.0, 2.8, 3.2)) == summary(answer(3.0, 2.8, 3.2), first)


def test_what_has_no_number_is_left_to_the_lines_that_name_it():
    none = answer(1.0, 1.0, 1.0, result=stats.NotComputable("too few"))
    unbounded = answer(float("inf"), 1.0, float("inf"))
    assert summary(none, answer(2.0, 1.8, 2.2), unbounded) == summary(answer(2.0, 1.8, 2.2))
    never = stats.Never("none in any of 18 runs")
    share = answer(1.0, 1.0, 1.0, response=LOSS, result=never)
    other = answer(1.0, 1.0, 1.0, response=LOSS, result=never, level="c")
    (row,) = summary(share, other)
    assert (row.response, row.interval) == (LOSS, None)
    assert texts(row) == ("", "none in any of 18 runs", "")


def test_a_difference_has_its_unit_and_a_ratio_without_an_upper_limit_says_so():
    (row,) = summary(answer(-3.0, -3.3, -2.7, kind=stats.Difference))
    assert texts(row)[0] == "B − A" and texts(row)[1] == "−3.00 [−3.30, −2.70] µs"
    (row,) = summary(answer(2.0, 1.8, float("inf")))
    assert "∞" in texts(row)[1]


def test_an_error_with_few_degrees_of_freedom_decides_nothing_and_stands_last():
    rows = summary(answer(9.0, 8.0, 10.0, degrees=1.0), answer(1.01, 0.9, 1.2))
    assert [row.outcome for row in rows] == ["undecided", FEW]
    assert texts(rows[1])[2] == "too few repetitions"
