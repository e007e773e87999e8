"""Test the sentence that names which cells had which guarantees."""

from __future__ import annotations

from types import SimpleNamespace

from wattwire.report.sections.settings import unequal_guarantees
from wattwire.report.tests.phrase_search import only, phrases_in

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
    (sentence,) = unequal_guarantees(
        evidence_of(
            *((pattern, cell, guarantee) for pattern in ("topic", "pingpong")
              for cell, guarantee in (("tcp/cpp", ORDERED), ("udp/cpp", LOSSY)))
        )
    )  # fmt: skip
    assert only(sentence, "node_settings.guarantees").values["kinds"] == 2
    assert phrases_in(sentence, "node_settings.patterns") == []
    of_cells = phrases_in(sentence, "node_settings.of_cells")
    assert [(one.values["cells"], one.values["guarantee"]) for one in of_cells] == [
        (("udp/cpp",), "best effort, none, drop newest"),
        (("tcp/cpp",), "reliable, per sender, block"),
    ]


def test_a_pattern_with_equal_guarantees_has_no_sentence_and_the_other_is_named():
    (sentence,) = unequal_guarantees(
        evidence_of(
            ("topic", "tcp/cpp", ORDERED), ("topic", "udp/cpp", ORDERED),
            ("pingpong", "tcp/cpp", ORDERED), ("pingpong", "udp/cpp", LOSSY),
        )
    )  # fmt: skip
    assert only(sentence, "node_settings.patterns").values["patterns"] == ["pingpong"]
    assert not unequal_guarantees(evidence_of(("topic", "tcp/cpp", ORDERED)))
