"""The numbers of streams, from facts and records that are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattwire.analysis.streams.numbers import (
    AHEAD,
    NO_STAMPS,
    NO_TIME,
    OTHER_CLOCK,
    OTHER_HOST,
    ZERO_STAMPS,
    Stream,
    Watched,
    watched,
)
from wattwire.analysis.streams.recorded import (
    NO_SEQUENCE,
    NO_STAMP,
    RECORD,
    Graph,
    ProbeFiles,
    Records,
)

SECOND_NS = 1_000_000_000
WALL_NS = 1_700_000_000 * SECOND_NS
"""Wall clock at the monotonic time 0."""
LATENCY_NS = 100_000


def records(count: int = 100, stream: int = 0, **changes: Any) -> Records:
    """Return the records of a publisher of 100 Hz whose messages take 100 µs."""
    rows = np.zeros(count, dtype=RECORD)
    rows["monotonic_ns"] = SECOND_NS + np.arange(count) * SECOND_NS // 100
    rows["taken_ns"] = WALL_NS + rows["monotonic_ns"]
    rows["source_ns"] = rows["taken_ns"] - LATENCY_NS
    rows["stamp_ns"] = NO_STAMP
    rows["sequence"] = 1 + np.arange(count)
    rows["bytes"], rows["stream"] = 64, stream
    for name, values in changes.items():
        rows[name] = values
    return rows


def graph(streams: int = 1, **fields: Any) -> Graph:
    known = Graph()
    for index in range(streams):
        fact = {"kind": "stream", "index": index, "gid": f"{index:032x}", "topic": "/t"}
        known.take({**fact, "node": f"/n{index}", "type": "p/T", "same_host": True, **fields})
    return known


def numbers(rows: Records, known: Graph | None = None) -> Watched:
    return watched(known or graph(), rows, SECOND_NS, 2 * SECOND_NS)


def only(rows: Records, known: Graph | None = None) -> Stream:
    (stream,) = numbers(rows, known).streams
    return stream


def test_rate_bytes_and_latency_are_those_of_the_window() -> None:
    stream = only(records(200))  # the second half is outside
    assert (stream.messages, stream.bytes_mean) == (100, 64)
    assert stream.rate_hz == pytest.approx(100)
    assert stream.bytes_per_s == pytest.approx(6400)
    assert stream.latency is not None
    assert stream.latency.p50_us == stream.latency.max_us == 100
    assert stream.no_latency == "" and stream.no_age == NO_STAMPS


def test_a_latency_is_never_computed_from_another_hosts_clock() -> None:
    stream = only(records(), graph(same_host=False))
    assert (stream.latency, stream.no_latency) == (None, OTHER_HOST)
    assert only(records(), graph(same_host=None)).latency is not None
    rows = records()
    rows["source_ns"] = rows["taken_ns"] + 1
    assert only(rows, graph(same_host=None)).no_latency == AHEAD
    assert only(records(source_ns=0)).no_latency == NO_TIME


def test_losses_are_unknown_without_numbers_of_publications() -> None:
    assert only(records(sequence=NO_SEQUENCE)).faults is None
    rows = np.delete(records(), [10, 11, 50])
    faults = only(rows).faults
    assert faults is not None and (faults.lost, faults.reordered) == (3, 0)


def test_a_message_that_arrives_again_has_no_second_latency() -> None:
    rows = np.concatenate([records(99), records(1)])
    rows["monotonic_ns"] = np.sort(records(100)["monotonic_ns"])
    rows["taken_ns"][-1] = rows["source_ns"][-1] + SECOND_NS
    stream = only(rows)
    assert stream.faults is not None and stream.faults.repeated == 1
    assert stream.latency is not None
    assert (stream.latency.count, stream.latency.max_us) == (99, 100)


def test_stamps_from_another_clock_give_no_age() -> None:
    rows = records()
    rows["stamp_ns"] = rows["taken_ns"] - 5_000_000
    stream = only(rows)
    assert stream.age is not None and stream.age.p50_us == 5000
    rows["stamp_ns"][:3] = 0
    assert only(rows).stamps.zero == 3 and only(rows).age is not None
    assert only(records(stamp_ns=0)).no_age == ZERO_STAMPS
    simulated = only(records(stamp_ns=12 * SECOND_NS))
    assert (simulated.no_age, simulated.stamps.old) == (OTHER_CLOCK, 100)
    rows["stamp_ns"][50] = rows["taken_ns"][50] + 1
    assert (only(rows).no_age, only(rows).stamps.ahead) == (OTHER_CLOCK, 1)


def test_latencies_after_a_jump_of_the_clock_are_not_used() -> None:
    rows = records(300)
    rows["taken_ns"][50:] -= 3 * SECOND_NS
    rows["source_ns"][51:] -= 3 * SECOND_NS  # message 50 was on its way
    result = watched(graph(), rows, SECOND_NS, 4 * SECOND_NS)
    assert result.jumps == [(pytest.approx(0.5), pytest.approx(-3))]
    (stream,) = result.streams
    assert stream.latency is not None
    assert stream.latency.max_us == 100 and stream.latency.count == 300 - 101
    assert stream.messages == 300


def test_a_publisher_that_falls_silent_is_named_and_a_slow_one_is_not() -> None:
    long_window = watched(graph(), records(), SECOND_NS, 12 * SECOND_NS).streams[0]
    assert long_window.silent_s == pytest.approx(10.01)
    slow = records(2)
    slow["monotonic_ns"] = [SECOND_NS, 3 * SECOND_NS]
    assert watched(graph(), slow, SECOND_NS, 12 * SECOND_NS).streams[0].silent_s is None


def test_publishers_have_a_row_each_and_one_that_ended_before_the_window_has_none() -> None:
    known = graph(3)
    known.take({"kind": "gone", "index": 2, "monotonic_ns": SECOND_NS // 2})
    rows = np.sort(np.concatenate([records(), records(40, 1)]), order="monotonic_ns")
    first, second = numbers(rows, known).streams
    assert (first.node, first.messages) == ("/n0", 100)
    assert (second.node, second.messages) == ("/n1", 40)


def test_messages_before_the_window_are_counted() -> None:
    known = graph()
    rows = records(1, monotonic_ns=SECOND_NS // 2)
    stream = only(rows, known)
    assert (stream.messages, stream.before, stream.rate_hz) == (0, 1, None)


def test_messages_that_a_publisher_keeps_for_new_readers_have_no_latency() -> None:
    known = graph()
    known.take({"kind": "topic", "topic": "/t", "subscribed_ns": WALL_NS + SECOND_NS})
    rows = records(3)
    rows["source_ns"][0] = WALL_NS
    stream = only(rows, known)
    assert (stream.messages, stream.before) == (2, 1)
    assert stream.latency is not None and stream.latency.max_us == 100


def test_the_cost_of_the_probe_is_that_of_the_window() -> None:
    known = graph()
    for at, cpu_ns, count in ((0.5, 0, 0), (1.1, 10**7, 10), (1.9, 5 * 10**7, 90)):
        usage = {"monotonic_ns": round(at * SECOND_NS), "cpu_ns": cpu_ns, "records": count}
        known.take({"kind": "usage", "rss_peak_kib": 4096, **usage})
    cost = numbers(records(), known).cost
    assert cost is not None
    assert cost.cpu_share == pytest.approx(0.05)
    assert cost.cpu_us_per_message == pytest.approx(500)
    assert numbers(records()).cost is None


def test_files_that_grow_are_read_again(tmp_path: Path) -> None:
    files = ProbeFiles(tmp_path)
    assert files.read_records().size == 0 and not files.read_facts().topics
    rows = np.zeros(150, dtype=RECORD)
    rows[:100] = records()
    rows.tofile(tmp_path / "records-000000.bin")
    facts = tmp_path / "facts.jsonl"
    line = json.dumps({"kind": "topic", "topic": "/t"})
    facts.write_text(f'{line}\n{{"kind": "top')
    assert files.read_records().size == 100
    assert set(files.read_facts().topics) == {"/t"}
    rows[100:] = records(50)
    rows.tofile(tmp_path / "records-000000.bin")
    rows.tofile(tmp_path / "records-000001.bin")
    with facts.open("a") as file:
        file.write('ic", "topic": "/u"}\n{"kind": "unheard of"}\n')
    assert files.read_records().size == 300
    assert set(files.read_facts().topics) == {"/t", "/u"}
