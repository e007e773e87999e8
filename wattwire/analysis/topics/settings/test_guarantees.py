"""Test that nodes with different guarantees are found, by pattern and cell."""

from __future__ import annotations

from types import SimpleNamespace

from wattwire.analysis.topics.settings.numbers import Guarantee, unequal
from wattwire.report.topic_page import Sentences

ORDERED = {"delivery": "reliable", "ordering": "per_sender", "overload": "block"}
SENTENCES = Sentences("settings")
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


def test_patterns_with_the_same_guarantees_are_together_and_name_their_cells():
    (nodes,) = unequal(
        evidence_of(
            *((pattern, cell, guarantee) for pattern in ("topic", "pingpong")
              for cell, guarantee in (("tcp/cpp", ORDERED), ("udp/cpp", LOSSY)))
        )
    )  # fmt: skip
    assert nodes.patterns == () and not nodes.is_unrepeated
    assert nodes.guarantees == (
        Guarantee("best effort, none, drop newest", ("udp/cpp",)),
        Guarantee("reliable, per sender, block", ("tcp/cpp",)),
    )


def test_a_pattern_with_equal_guarantees_is_not_named_and_the_other_is():
    (nodes,) = unequal(
        evidence_of(
            ("topic", "tcp/cpp", ORDERED), ("topic", "udp/cpp", ORDERED),
            ("pingpong", "tcp/cpp", ORDERED), ("pingpong", "udp/cpp", LOSSY),
        )
    )  # fmt: skip
    assert nodes.patterns == ("pingpong",)
    assert "the nodes of pingpong had 2 different" in SENTENCES.unequal(nodes)
    assert list(unequal(evidence_of(("topic", "tcp/cpp", ORDERED)))) == []


def test_best_effort_next_to_reliable_is_named_although_no_queue_guarantees_delivery():
    found = evidence_of(("topic", "ros2/cpp", LOSSY), ("topic", "ros2/cpp", LOSSY))
    found.varied, found.title = ["settings.reliability"], lambda _, level: level
    for run, level in zip(found.runs.values(), ("reliable", "best_effort"), strict=True):
        run["levels"]["settings.reliability"] = level
        run["nodes"][0]["ready"]["effective"] = {"reliability": level}
    (nodes,) = unequal(found)
    assert nodes.is_unrepeated
    assert "With reliability = best_effort, lost messages are not" in SENTENCES.unequal(nodes)
    assert [kind.cells for kind in nodes.guarantees] == [
        ("ros2/cpp (reliable)",), ("ros2/cpp (best_effort)",),
    ]  # fmt: skip
