"""Tests of the faults of each hop: each kind at the hop that caused it, and 0 elsewhere."""

from __future__ import annotations

import random

import polars as pl
import pytest

from wattwire.analysis.topics.hops.faults import KINDS, hop_faults
from wattwire.model.deployment import RELAYED, Flow
from wattwire.model.sample_codes import FLAG_CORRUPT

MESSAGES, SEEDS = 60, 20
PATH = (0, 3, 4, 1, 5, 6, 2)
FLOW = Flow("f", 0, (2,), PATH[1:-1])
LAST = len(PATH) - 1


def passages(hop=0, kind="", counters=()):
    """Return the records of a path, of which one hop has a fault of one kind.

    A fault changes all later hops too, except a record that only this hop lacks.
    """
    rows = []
    for position, node in enumerate(PATH):
        is_after = kind != "unrecorded" and position >= hop or position == hop
        chosen = set(counters) if kind and is_after else set()
        for message in range(MESSAGES):
            at_ns = message * 1000 + position * 100
            if message in chosen and kind in ("lost", "unrecorded"):
                continue
            if message in chosen and kind == "swapped":
                at_ns += 1000 if message % 2 == 0 else -1000
            flags = FLAG_CORRUPT if message in chosen and kind == "altered" else 0
            row = {
                "sender": 0, "node": node, "counter": message,
                "kind": RELAYED if node in FLOW.relays else "message", "intended_ns": at_ns,
                "begin_ns": at_ns + 10, "end_ns": at_ns + 20, "flags": flags,
            }  # fmt: skip
            rows += [row] * (2 if message in chosen and kind == "doubled" else 1)
    return pl.DataFrame(rows)


def found(records):
    """Return (hop, kind, messages) of all faults."""
    return [
        (f.hop, kind, set(m)) for f in hop_faults(records, FLOW) for kind, m in f.faults.items()
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_fault_is_found_at_its_hop_and_nowhere_else(kind):
    for seed in range(SEEDS):
        chance = random.Random(seed)
        hops = range(1, LAST if kind == "unrecorded" else LAST + 1)
        hop = chance.choice(hops)
        counters = set(chance.sample(range(MESSAGES), 5))
        if kind == "swapped":  # whole pairs of neighbours
            counters = {m for first in counters for m in (first // 2 * 2, first // 2 * 2 + 1)}
        assert found(passages(hop, kind, counters)) == [(hop, kind, counters)], seed


def test_a_sound_path_has_no_faults():
    assert found(passages()) == []


def test_each_hop_names_its_node():
    assert [fault.node for fault in hop_faults(passages(), FLOW)] == list(PATH[1:])
