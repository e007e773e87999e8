"""Test that a fault in a chain is a breach of C-37 and that its text names the hop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contract.conformance import CellUnderTest
from contract.conformance.audit import Expect, NodeRun
from contract.conformance.audit_one_way import pipeline
from contract.conformance.group import Group, pair
from contract.conformance.process import NodeProcess
from contract.conformance.roles import MESSAGE, RELAY
from contract.conformance.samples import CORRUPT, UNKNOWN_NS, Record, Samples
from contract.conformance.spec import SENDER_NODE

COUNT = 10
PERIOD_NS, HOP_NS = 1_000_000, 1_000
READY = {"guarantee": {"delivery": "reliable", "ordering": "per_sender", "overload": "block"}}
CELL = CellUnderTest("fake/python", (), capabilities=["encoding.bytes", "pacing.kit", "loop.open"])

Chain = list[list[Record]]
"""The records of each node, from the source to the sink."""


def record(hop: int, counter: int) -> Record:
    """Return the record of a message at the source (0), at a relay (1 or 2) or at the sink (3)."""
    seq, due_ns = SENDER_NODE << 48 | counter, counter * PERIOD_NS
    arrival_ns = due_ns + hop * HOP_NS
    times = [
        (due_ns, due_ns + 1, due_ns + 2),
        *[(arrival_ns, arrival_ns + 1, arrival_ns + 2)] * 2,
        (UNKNOWN_NS, due_ns + 1, arrival_ns),
    ][hop]
    return Record(seq, *times, 64, SENDER_NODE, RELAY if hop in (1, 2) else MESSAGE, 0)


def whole_chain() -> Chain:
    return [[record(hop, counter) for counter in range(COUNT)] for hop in range(4)]


def breaches(chain: Chain, folder: Path, **expected: bool) -> list[tuple[str, str]]:
    """Return (clause, text) for each breach in the records of a chain with two relays."""
    runs = []
    for (_, spec), records in zip(
        Group(folder, "pipeline", pair(CELL, CELL, "pipeline"), []).members, chain, strict=True
    ):
        node = SimpleNamespace(
            spec=spec, label=f"node {spec['hop']}", fields=lambda keyword: READY, cell=CELL
        )
        runs.append(NodeRun(cast(NodeProcess, node), Samples(records, 0, []), False))
    problems = pipeline(runs[:1], runs[1:], Expect(**expected))
    return [(problem.clause, problem.text) for problem in problems]


def changed(record: Record, **fields: Any) -> Record:
    return record._replace(**fields)


def lose_at_hop_2(chain: Chain) -> None:
    for later in chain[2:]:
        del later[3]


def repeat_at_the_sink(chain: Chain) -> None:
    chain[3].append(changed(chain[3][4], end_ns=chain[3][4].end_ns + 1))


def swap_after_hop_1(chain: Chain) -> None:
    late_ns = chain[2][5].intended_ns + 1
    chain[2][4] = changed(chain[2][4], intended_ns=late_ns, begin_ns=late_ns + 1)


def send_out_of_order_at_hop_1(chain: Chain) -> None:
    chain[1][4] = changed(chain[1][4], begin_ns=chain[1][6].begin_ns)


def corrupt_after_hop_2(chain: Chain) -> None:
    chain[3][7] = changed(chain[3][7], flags=CORRUPT)


def renew_the_send_time(chain: Chain) -> None:
    chain[3][2] = changed(chain[3][2], begin_ns=chain[3][2].begin_ns + 500)


def begin_before_the_arrival_at_hop_2(chain: Chain) -> None:
    chain[2][1] = changed(chain[2][1], begin_ns=chain[2][1].intended_ns - 1)


def arrive_before_the_send_of_hop_1(chain: Chain) -> None:
    begin_ns = chain[1][8].begin_ns
    chain[2][8] = changed(chain[2][8], intended_ns=begin_ns - 1)


@pytest.mark.parametrize(
    ("fault", "label", "words"),
    [
        (lose_at_hop_2, "node 2", "lost 1 of 10 (0x203000000000003) from hop 1 to hop 2"),
        (repeat_at_the_sink, "node 3", "duplicates from hop 2 to hop 3"),
        (swap_after_hop_1, "node 2", "arrival at hop 2 is not the order of sends at hop 1"),
        (send_out_of_order_at_hop_1, "node 1", "not the order of arrival"),
        (corrupt_after_hop_2, "node 3", "so hop 2 changed the bytes"),
        (renew_the_send_time, "node 3", "(hops of the relays between: 1, 2)"),
        (begin_before_the_arrival_at_hop_2, "node 2", "begin_ns is before intended_ns"),
        (arrive_before_the_send_of_hop_1, "node 2", "arrived at hop 2 before hop 1 sent it"),
    ],
)
def test_a_fault_of_a_relay_breaks_c37_and_the_text_names_the_hop(
    fault: Callable[[Chain], None], label: str, words: str, tmp_path: Path
) -> None:
    chain = whole_chain()
    assert breaches(chain, tmp_path) == []
    fault(chain)
    (clause, text), *_ = breaches(chain, tmp_path)
    assert clause == "C-37"
    assert text.startswith(f"{label}: ") and words in text


def test_expected_losses_and_duplicates_are_no_breach(tmp_path: Path) -> None:
    chain = whole_chain()
    lose_at_hop_2(chain)
    repeat_at_the_sink(chain)
    assert breaches(chain, tmp_path, loss=True, duplicates=True) == []
