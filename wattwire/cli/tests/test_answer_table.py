"""Test the lines of the table of answers, and of the interactions below it."""

from wattwire.analysis.answering.answer_types import Answer, Answers
from wattwire.analysis.document import Document
from wattwire.analysis.responses import LATENCY_P50
from wattwire.analysis.topics.answers.numbers import AnsweredStudy
from wattwire.analysis.topics.answers.tables import Short
from wattwire.analysis.topics.interactions.numbers import Change, Interactions, RatioAtLevel
from wattwire.cli.answer_table import lines
from wattwire.stats import Interval, NotComputable


def interval(estimate: float) -> Interval:
    return Interval(estimate, 0.9 * estimate, 1.1 * estimate, 0.95, 5, "t")


def results(*estimates: float, changes: tuple[Change, ...] = ()) -> Document:
    """Return the results of a campaign with these ratios of the median latency."""
    shorts = tuple(
        Short(LATENCY_P50, "B", "A", interval(estimate), True, "different")
        for estimate in estimates
    )
    study = AnsweredStudy(Answers((), len(shorts), 0.95, None, 5), shorts)
    return Document({"interactions": Interactions(changes=changes), "answers": study}, {})


def test_one_answer_needs_no_table_and_many_are_cut_with_their_number():
    assert lines(results(2.0), 80) == []
    told = lines(results(*[2.0 + at for at in range(14)]), 80)
    assert told[0].split() == [
        "response", "estimate", "[95", "%", "interval,", "all", "14", "together]",
    ]  # fmt: skip
    assert told[1].split() == [
        "median", "latency", "B", "/", "A", "2.00", "[1.80,", "2.20]", "different",
    ]  # fmt: skip
    assert told[-1] == "and 2 more on the page"
    assert len(told) == 1 + 12 + 1
    assert all(len(line) <= 80 for line in told)


def test_changes_with_another_factor_are_said_below_and_the_rest_counted():
    ends = tuple(RatioAtLevel(at, f"{at} B", interval(at)) for at in (3.0, 1.0))
    pending = NotComputable("not computed")
    answer = Answer("Q", LATENCY_P50, "language", "b", "a", pending, pending, None, "B", "A")
    change = Change(answer, "payload_bytes", ends)
    told = lines(results(2.0, 3.0, changes=(change,) * 5), 80)
    sentence = "B / A in median latency depends on payload: 1.00 [0.900, 1.10] at 1.0 B"
    assert " ".join(told).count(sentence) == 3
    assert told[-1] == "The page has 2 more interactions."
