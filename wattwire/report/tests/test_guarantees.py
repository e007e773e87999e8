"""Test the sentence that names which cells had which guarantees."""

from __future__ import annotations

from types import SimpleNamespace

from wattwire.report.tests.phrase_search import only, phrases_in
from wattwire.report.words.guarantees import unequal

ORDERED = {"delivery": "reliable", "ordering": "per_sender", "overload": "block"}
LOSSY = {"delivery": "best_effort", "ordering": "none", "overload": "drop_newest"}


def evidence_of(*runs):
    """Return evidence of runs (pattern, cell, guarantee)."""
    return SimpleNamespace(
        varied=[],
        runs={
            str(number): {
                "levels": {"pattern": pattern},
                "nodes": [{"cell": cell, "role": "ping", "ready": {"guarantee": guarantee}}],
            }
            for number, (pattern, cell, guarantee) in enumerate(runs)
        },
    )


def test_patterns_with_the_same_guarantees_share_a_sentence_that_names_the_cells():
    (sentence,) = unequal(
        evidence_of(
            *((pattern, cell, guarantee) for pattern in ("topic", "pingpong")
              for cell, guarantee in (("tcp/cpp", ORDERED), ("udp/cpp", LOSSY)))
        )
    )  # fmt: skip
    assert only(sentence, "guarantees.unequal").values["kinds"] == 2
    assert phrases_in(sentence, "guarantees.patterns") == []
    of_cells = phrases_in(sentence, "guarantees.of_cells")
    assert [(one.values["cells"], one.values["guarantee"]) for one in of_cells] == [
        (("udp/cpp",), "best effort, none, drop newest"),
        (("tcp/cpp",), "reliable, per sender, block"),
    ]


def test_a_pattern_with_equal_guarantees_has_no_sentence_and_the_other_is_named():
    (sentence,) = unequal(
        evidence_of(
            ("topic", "tcp/cpp", ORDERED), ("topic", "udp/cpp", ORDERED),
            ("pingpong", "tcp/cpp", ORDERED), ("pingpong", "udp/cpp", LOSSY),
        )
    )  # fmt: skip
    assert only(sentence, "guarantees.patterns").values["patterns"] == ["pingpong"]
    assert not unequal(evidence_of(("topic", "tcp/cpp", ORDERED)))


def test_best_effort_next_to_reliable_is_named_although_no_queue_guarantees_delivery():
    found = evidence_of(("topic", "ros2/cpp", LOSSY), ("topic", "ros2/cpp", LOSSY))
    found.varied, found.title = ["settings.reliability"], lambda _, level: level
    for run, level in zip(found.runs.values(), ("reliable", "best_effort"), strict=True):
        run["levels"]["settings.reliability"] = level
        run["nodes"][0]["ready"]["effective"] = {"reliability": level}
    (sentence,) = unequal(found)
    assert only(sentence, "guarantees.repeats").values["setting"] == "reliability = best_effort"
    of_cells = phrases_in(sentence, "guarantees.of_cells")
    assert [str(one.values["cells"][0]) for one in of_cells] == [
        "ros2/cpp (reliable)", "ros2/cpp (best_effort)",
    ]  # fmt: skip
