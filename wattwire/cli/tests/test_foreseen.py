"""Tests of the questions that a plan reports as unanswerable, with the reasons."""

from __future__ import annotations

import pytest

from wattwire.cli.planning.foreseen import skipped_lines, unanswerable_lines
from wattwire.design import expand
from wattwire.model.study import parse_study
from wattwire.run.resolve_cells import Prepared


def study(responses=("latency_p50_us",), **more):
    document = {
        "question": [{"id": "Q1", "factors": ["cell"], "responses": list(responses)}],
        "factors": {"cell": ["a/x", "b/x"], "payload_bytes": [1, 2, 3]},
        "fixed": {"pattern": "pingpong"},
        **more,
    }
    return parse_study("s", document, "s")


def treatments(one):
    return [treatment for treatment, because in expand(one) if because is None]


def meter(name, *quantities, default=True):
    return {"name": name, "default": default,
            "quantities": [{"name": q, "rank": rank} for q, rank in quantities]}  # fmt: skip


CPU = meter("cpu", ("cpu_time", None))
COUNTER = meter("counter", ("energy", 3))


def test_few_treatments_are_named_with_their_reason_and_many_are_counted():
    found = treatments(study())
    few = Prepared([], {}, [(t, "b/x: protoc is not on PATH") for t in found[3:5]], {})
    assert skipped_lines(few) == [
        "skipped 2 treatments (cell=b/x payload_bytes=1; cell=b/x payload_bytes=2): b/x: protoc "
        "is not on PATH"
    ]
    many = Prepared([], {}, [(t, "why") for t in found], {})
    assert skipped_lines(many) == ["skipped 6 treatments: why"]


def test_a_factor_with_one_level_left_answers_nothing():
    one = study()
    left = [t for t in treatments(one) if t["cell"] == "a/x"]
    assert unanswerable_lines(one, left, [CPU]) == [
        "no answer to question Q1: cell has one level here (a/x), so there is nothing to compare"
    ]
    assert unanswerable_lines(one, treatments(one), [CPU]) == []


def test_a_factor_of_a_question_that_is_held_in_fixed_answers_nothing():
    asked = {"id": "Q1", "factors": ["settings.depth", "cell"], "responses": ["latency_p50_us"]}
    one = study(question=[asked], fixed={"pattern": "pingpong", "settings.depth": 5})
    (line,) = unanswerable_lines(one, treatments(one), [CPU])
    assert line == (
        "no answer to question Q1 about settings.depth: depth has one level here (5), so there is "
        "nothing to compare"
    )


@pytest.mark.parametrize(
    ("meters", "lacks"),
    [
        ([CPU, COUNTER], ()),
        ([CPU], ("energy",)),
        ([CPU, meter("spare", ("energy", 1), default=False)], ("energy",)),
        ([COUNTER], ("cpu", "memory_kib.ping.0")),
        (None, ()),
    ],
)
def test_a_response_that_no_meter_here_reads_is_named(meters, lacks):
    one = study(
        ["latency", "energy", "cpu"] + (["memory_kib.ping.0"] if meters == [COUNTER] else [])
    )
    told = unanswerable_lines(one, treatments(one), meters)
    assert [line.split(" in ")[1].split(":")[0] for line in told] == list(lacks)


def test_a_meter_that_the_study_uses_counts_though_it_is_no_default():
    one = study(["energy"], meters={"use": ["spare"]})
    spare = meter("spare", ("energy", 1), default=False)
    assert unanswerable_lines(one, treatments(one), [spare]) == []
    assert unanswerable_lines(one, treatments(one), [COUNTER])
