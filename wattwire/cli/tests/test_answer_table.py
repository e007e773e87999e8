"""Tests of the order of rows and the interval limits in the table of answers."""

from typing import Any

from wattwire.analysis.answering.answer_types import Answer
from wattwire.analysis.document import Document
from wattwire.analysis.responses import LATENCY_P50
from wattwire.analysis.topics.interactions.numbers import Change, Interactions, RatioAtLevel
from wattwire.cli.answer_table import lines, rows
from wattwire.stats import Interval, NotComputable


def contrast(estimate: float | None, outcome: str = "different", **more: Any) -> dict[str, Any]:
    return {
        "kind": "ratio", "response_title": "median latency", "unit": "µs", "level_title": "B",
        "baseline_title": "A", "estimate": estimate, "low": estimate and 0.9 * estimate,
        "high": estimate and 1.1 * estimate, "outcome": outcome, **more,
    }  # fmt: skip


def document(*contrasts: dict[str, Any]) -> dict[str, Any]:
    return {"contrasts": list(contrasts), "confidence": 0.95, "family": len(contrasts)}


def results(values: dict[str, Any], changes: tuple[Change, ...] = ()) -> Document:
    return Document({"interactions": Interactions(changes=changes)}, values)


def test_decided_answers_come_first_and_among_them_the_largest_effect_either_way():
    every = rows(
        document(
            contrast(1.01, "undecided"), contrast(2.0), contrast(0.2), contrast(1.0, "equivalent")
        )
    )
    assert [row[2].split()[0] for row in every] == ["5.00", "2.00", "1.00", "1.01"]
    assert [row[3] for row in every][-2:] == ["equivalent", "no difference detected"]


def test_the_larger_side_of_a_ratio_stands_first_as_in_sentences():
    (row,) = rows(document(contrast(0.5, low=0.4, high=0.625)))
    assert row[1:3] == ("A / B", "2.00 [1.60, 2.50]")
    (row,) = rows(document(contrast(0.5, low=0.4, high=1.25)))
    assert row[1:3] == ("A / B", "2.00 [0.800, 2.50]")
    (row,) = rows(document(contrast(0.5, low=0.0, high=1.25)))
    assert row[1] == "B / A", "its inverse would have no upper limit"


def test_what_has_no_number_is_left_to_the_lines_that_name_it():
    none = {"kind": "none", "reason": "too few", "response_title": "CPU time", "is_share": False}
    assert rows(document(none, contrast(2.0), contrast(None))) == rows(document(contrast(2.0)))
    share = {**none, "reason": "none in any of 18 runs", "is_share": True}
    assert rows(document(share, share))[0] == ("CPU time", "", "none in any of 18 runs", "")
    assert len(rows(document(share, share))) == 1


def test_a_difference_has_its_unit_and_a_ratio_without_an_upper_limit_says_so():
    (row,) = rows(document(contrast(-3.0, kind="difference")))
    assert row[1] == "B − A" and row[2].endswith("µs")
    (row,) = rows(document(contrast(2.0, high=None)))
    assert "∞" in row[2]


def test_one_answer_needs_no_table_and_many_are_cut_with_their_number():
    assert lines(results(document(contrast(2.0))), 80) == []
    told = lines(results(document(*[contrast(2.0 + at) for at in range(14)])), 80)
    assert told[-1] == "and 2 more on the page"
    assert len(told) == 1 + 12 + 1
    assert all(len(line) <= 80 for line in told)


def test_changes_with_another_factor_are_said_below_and_the_rest_counted():
    ends = [
        RatioAtLevel(at, f"{at} B", Interval(at, 0.9 * at, 1.1 * at, 0.95, 5, "t"))
        for at in (3.0, 1.0)
    ]
    pending = NotComputable("not computed")
    answer = Answer("Q", LATENCY_P50, "language", "b", "a", pending, pending, None, "B", "A")
    change = Change(answer, "payload_bytes", tuple(ends))
    told = lines(results(document(contrast(2.0), contrast(3.0)), (change,) * 5), 80)
    sentence = "B / A in median latency depends on payload: 1.00 [0.900, 1.10] at 1.0 B"
    assert " ".join(told).count(sentence) == 3
    assert told[-1] == "The page has 2 more interactions."
