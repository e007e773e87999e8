"""Test that impossible records and values are refused and bad but possible results accepted."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wattwire.model.hosts.clocks import ClockRelation, Knot, NodeClocks
from wattwire.model.records import MESSAGE_RECORD, NodeSamples
from wattwire.model.sample_codes import (
    FLAG_CORRUPT,
    FLAG_FAILED,
    FLAG_TIMEOUT,
    FLAG_WARM_UP,
    KINDS,
    UNKNOWN_NS,
    UNKNOWN_PEER,
)
from wattwire.run.node_specs import MESSAGE_RECORD_BYTES
from wattwire.run.results import node_checks
from wattwire.run.run_processes import ProcessState

LATENCY_NS, BAND_NS = 150_000, 100_000
FIRST_NS, START_NS, LAST_NS = 10**12, 10**12 + 10**9, 10**12 + 3 * 10**9
SPEC = {
    "payload.bytes": 64, "payload.encoding": "bytes", "payload.literal": "", "reply": "echo",
    "reply.literal": "", "loop": "open", "period_ns": 10**8, "phase_ns": 3 * 10**7,
    "duration_ns": 10**9, "count": 0, "count_beyond": 0,
}  # fmt: skip
SENDERS = ("publisher", "client", "ping", "action_client")


@dataclass
class Node:
    """Fields of a planned node that the checks use."""

    node: int
    role: str
    spec: dict[str, Any]

    @property
    def sends(self) -> bool:
        return self.role in SENDERS

    @property
    def listens(self) -> bool:
        return not self.sends

    @property
    def process(self) -> str:
        return f"{self.role}-0"


def node(role: str, **changes: Any) -> Any:
    number = 1 if role in SENDERS else 0
    return Node(number, role, {**SPEC, "peers.nodes": [1 - number], **changes})


def samples(role: str, *changes: dict[str, int], kind: str = "message") -> NodeSamples:
    """Return the samples of node 1: one valid record per table of changes. Counters begin at 0."""
    records = np.zeros(len(changes), MESSAGE_RECORD)
    for counter, table in enumerate(changes):
        record = {
            "seq": 1 << 48 | counter, "intended_ns": UNKNOWN_NS, "begin_ns": START_NS + 100,
            "end_ns": START_NS + 900, "bytes": 64, "peer": 1, "kind": KINDS.index(kind),
            "flags": 0, **table,
        }  # fmt: skip
        records[counter] = tuple(record[name] for name in MESSAGE_RECORD.names or ())
    return NodeSamples(role, 0, 0, records)


def faults(role: str, *changes: dict[str, int], kind: str = "message", **spec: Any) -> list[str]:
    found = samples(role, *changes, kind=kind)
    return list(node_checks.record_faults(node(role, **spec), found, FIRST_NS, LAST_NS))


@pytest.mark.parametrize(
    "change, told",
    [
        ({"end_ns": START_NS - 2 * 10**9}, "C-27: found 1 record with end_ns outside"),
        (
            {"end_ns": START_NS - 10**6},
            "C-27: found 1 record with end_ns before begin_ns (of 2 in total)",
        ),
        ({"begin_ns": -(2**63) + 1, "end_ns": 2**63 - 1}, "C-27: found 1 record with begin_ns"),
        ({"begin_ns": 0}, "C-27: found 1 record with begin_ns outside"),
        ({"end_ns": LAST_NS + 1}, "C-27: found 1 record with end_ns outside"),
        ({"intended_ns": LAST_NS + 1}, "C-27: found 1 record with intended_ns outside"),
        ({"end_ns": UNKNOWN_NS}, "C-27: found 1 record without an end"),
        ({"bytes": 63}, "C-25: found 1 record of another length than 64 bytes"),
        ({"bytes": 2**32 - 1}, "C-25"),
        ({"bytes": 0, "flags": FLAG_WARM_UP}, "C-25"),
        (
            {"kind": KINDS.index("call")},
            "C-27: found 1 record with a kind that the role subscriber does not",
        ),
        ({"seq": 7 << 48}, "C-17: found 1 record of a sender that is not in the run"),
        ({"seq": 1 << 48 | 2**48 - 1}, "C-17: found 1 record of a probe"),
    ],
)
def test_an_impossible_record_is_named_by_its_clause(change: dict[str, int], told: str) -> None:
    found = faults("subscriber", {}, change)
    assert found and found[0].startswith(told)


@pytest.mark.parametrize(
    "role, kind, change, spec",
    [
        ("subscriber", "message", {}, {}),
        ("subscriber", "message", {"flags": FLAG_WARM_UP}, {}),
        # The clocks of two processors may differ by a few nanoseconds.
        ("subscriber", "message", {"end_ns": START_NS + 99}, {}),
        # A corrupt payload may contain any send time and have any length.
        ("subscriber", "message", {"flags": FLAG_CORRUPT, "begin_ns": -7, "bytes": 3}, {}),
        ("subscriber", "message", {"begin_ns": UNKNOWN_NS, "bytes": 8}, {"payload.bytes": 8}),
        ("subscriber", "message", {"begin_ns": UNKNOWN_NS, "bytes": 11, "seq": UNKNOWN_PEER << 48},
         {"payload.literal": "Hello World"}),
        ("subscriber", "message", {"bytes": 112},
         {"payload.encoding": "record", "payload.bytes": 127}),
        ("publisher", "message", {"intended_ns": START_NS, "flags": FLAG_FAILED,
                                  "end_ns": UNKNOWN_NS}, {}),
        ("client", "call", {"flags": FLAG_TIMEOUT, "end_ns": UNKNOWN_NS}, {}),
        ("client", "call", {"flags": FLAG_FAILED, "end_ns": UNKNOWN_NS}, {}),
        ("client", "call", {"bytes": 8}, {"reply": "ack"}),
        ("client", "call", {"bytes": 16}, {"reply": "ack", "payload.encoding": "text"}),
        ("client", "call", {"bytes": 5}, {"reply": "literal", "reply.literal": "hello"}),
        ("pong", "call", {}, {}),
        ("action_server", "accept", {"bytes": 0}, {}),
        ("action_client", "feedback", {"begin_ns": UNKNOWN_NS}, {}),
    ],
)  # fmt: skip
def test_what_can_be_is_taken(
    role: str, kind: str, change: dict[str, int], spec: dict[str, Any]
) -> None:
    assert faults(role, change, kind=kind, **spec) == []


def clocks_with(drift_ppm: float, length_s: int, has_rate: bool = True) -> NodeClocks:
    """Return the clocks of nodes 0 and 1: that of node 0 is 5 s ahead and drifts."""
    knots = []
    for at_ns in (START_NS, START_NS + length_s * 10**9):
        offset_ns = 5 * 10**9 + round((at_ns - START_NS) * drift_ppm / 1e6)
        knots.append(Knot(at_ns, offset_ns, BAND_NS))
    far = ClockRelation("far", tuple(knots if has_rate else knots[:1]))
    near = ClockRelation("near")
    return NodeClocks({0: far, 1: near}, near)


def received(drift_ppm: float, length_s: int, latency_ns: int) -> NodeSamples:
    """Return arrivals at node 0 on its clock, over the whole run, each after the same latency."""
    sent_ns = [START_NS + length_s * 10**9 * k // 10 for k in range(11)]
    clock = clocks_with(drift_ppm, length_s).relations[0]
    rows = [{"begin_ns": ns, "end_ns": clock.host_ns(ns + latency_ns)} for ns in sent_ns]
    return samples("subscriber", *rows)


@pytest.mark.parametrize("length_s", [10, 60, 600])
@pytest.mark.parametrize("drift_ppm", [-40, -5, -1, 1, 40])
def test_clocks_that_drift_apart_break_no_clause(drift_ppm: float, length_s: int) -> None:
    """The lifetime is exact on the reference clock, and the latency is above the error by 50 us."""
    subscriber, last_ns = node("subscriber"), START_NS + length_s * 10**9 + LATENCY_NS
    arrived = received(drift_ppm, length_s, LATENCY_NS)
    check = functools.partial(node_checks.record_faults, subscriber, arrived, START_NS, last_ns)
    assert list(check(clocks_with(drift_ppm, length_s))) == []
    if drift_ppm * length_s <= -400:  # 0.4 ms, beyond latency and error of the clocks
        (fault,) = check(clocks_with(drift_ppm, length_s, has_rate=False))
        assert "with end_ns before begin_ns" in fault


@pytest.mark.parametrize("drift_ppm", [-40, 40])
def test_an_arrival_before_its_send_is_a_fault_on_clocks_that_drift(drift_ppm: float) -> None:
    arrived = received(drift_ppm, 600, -(10**6))
    last_ns, clocks = START_NS + 601 * 10**9, clocks_with(drift_ppm, 600)
    (fault,) = node_checks.record_faults(
        node("subscriber"), arrived, START_NS - 10**7, last_ns, clocks
    )
    assert fault.startswith("C-27: found 11 records with end_ns before begin_ns")
    late = node_checks.record_faults(
        node("subscriber"), received(drift_ppm, 600, LATENCY_NS), START_NS, START_NS, clocks
    )
    begins, ends = late
    assert "10 records with begin_ns outside" in begins and "11 records with end_ns" in ends


def test_forecasts_of_memory_use_the_size_of_a_record() -> None:
    assert MESSAGE_RECORD.itemsize == MESSAGE_RECORD_BYTES


def test_an_arrival_that_nobody_sent_and_a_message_sent_twice_are_faults() -> None:
    nodes = [node("subscriber"), node("publisher")]
    sent = samples("publisher", {}, {}, {})
    arrived = samples("subscriber", {}, {}, {"seq": 1 << 48 | 1})
    assert list(node_checks.sequence_faults(nodes, {0: [arrived], 1: [sent]})) == []
    strange = samples("subscriber", {}, {"seq": 1 << 48 | 77})
    (fault,) = node_checks.sequence_faults(nodes, {0: [strange], 1: [sent]})
    assert "C-21" in fault and "counter 77" in fault
    twice = samples("publisher", {}, {}, {"seq": 1 << 48})
    (fault,) = node_checks.sequence_faults(nodes, {0: [arrived], 1: [sent, twice]})
    assert "C-17" in fault and "more than once" in fault


def test_of_a_sender_that_left_no_records_or_not_all_nothing_is_known() -> None:
    nodes = [node("subscriber"), node("publisher")]
    arrived = samples("subscriber", {}, {})
    assert list(node_checks.sequence_faults(nodes, {0: [arrived]})) == []
    cut = NodeSamples("publisher", 1, 1, samples("publisher", {}).records)
    assert list(node_checks.sequence_faults(nodes, {0: [arrived], 1: [cut]})) == []


def lines_of(role: str, exit: Any = None, **lines: dict[str, Any]) -> list[str]:
    state = ProcessState(spawned_ns=FIRST_NS, lines=lines, exit=exit)
    return list(node_checks.line_faults(node(role), state, START_NS, START_NS + 2 * 10**9))


SENT = {
    "begin_ns": START_NS, "end_ns": START_NS + 5, "sent": 10, "scheduled": 10, "skipped": 0,
    "seen_ns": START_NS + 10**9,
}  # fmt: skip


@pytest.mark.parametrize(
    "change, told",
    [
        ({}, ""),
        ({"sent": 4, "skipped": 3}, ""),
        ({"sent": 0, "begin_ns": None, "end_ns": None}, ""),
        ({"scheduled": 9}, "C-14: SENT: scheduled is 9; the spec requires 10"),
        ({"sent": 11}, "C-14: SENT: sent 11 and skipped 0 of 10"),
        ({"begin_ns": 5}, "C-14: SENT: begin_ns is 5, outside"),
        ({"end_ns": LAST_NS}, "C-14: SENT: end_ns is"),
        ({"seen_ns": START_NS - 1, "begin_ns": None, "end_ns": None}, "C-14: SENT came before"),
    ],
)
def test_sent_says_what_can_be(change: dict[str, Any], told: str) -> None:
    found = lines_of("publisher", SENT={**SENT, **change})
    assert found == [] if not told else found[0].startswith(told)


def test_lines_of_another_role_or_another_time_are_faults() -> None:
    (fault,) = lines_of("subscriber", SENT=SENT)
    assert fault.startswith("C-14: the subscriber printed SENT")
    (fault,) = lines_of("publisher", LISTENING={"endpoints": ["x"]})
    assert fault.startswith("C-06: the publisher printed LISTENING")
    ready = {"startup_ns": 10**9, "discovery_ns": None, "seen_ns": FIRST_NS + 5 * 10**8}
    (fault,) = lines_of("publisher", READY=ready)
    assert fault.startswith("C-07: READY: startup_ns is 1000000000, but the process was 500000000")
    (fault,) = lines_of("subscriber", DONE={"seen_ns": START_NS + 10**9})
    assert fault == "C-15: DONE came before STOP"
    (fault,) = lines_of("subscriber", exit={"code": 0})
    assert fault == "C-16: it ended with code 0 without DONE"
    assert lines_of("subscriber", exit={"code": 1}) == []


def test_done_and_the_files_agree_on_what_found_no_room() -> None:
    parts = [SimpleNamespace(overflow=2), SimpleNamespace(overflow=1)]
    assert list(node_checks.count_faults({"overflow": 3}, parts)) == []  # type: ignore[arg-type]
    assert list(node_checks.count_faults(None, parts)) == []  # type: ignore[arg-type]
    (fault,) = node_checks.count_faults({"overflow": 0}, parts)  # type: ignore[arg-type]
    assert fault.startswith("C-26")


def test_the_schedule_is_that_of_the_contract() -> None:
    assert node_checks.scheduled({**SPEC}) == 10
    assert node_checks.scheduled({**SPEC, "phase_ns": 10**8}) == 9
    assert node_checks.scheduled({**SPEC, "loop": "closed", "count": 7}) == 7
