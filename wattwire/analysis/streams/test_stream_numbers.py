"""The numbers of streams, from facts and records that are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattwire.analysis.streams.numbers import (
    AHEAD,
    LOST,
    NO_STAMPS,
    NO_TIME,
    OTHER_CLOCK,
    OTHER_HOST,
    TOO_FEW,
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


def records(count: int = 100, stream: int = 0, hz: int = 100, **changes: Any) -> Records:
    """Return the records of a publisher whose messages take 100 µs."""
    rows = np.zeros(count, dtype=RECORD)
    rows["monotonic_ns"] = SECOND_NS + np.arange(count) * SECOND_NS // hz
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


def latched(graph_: Graph, subscribed_ns: int = SECOND_NS) -> Graph:
    """Return the graph with a probe that subscribed at a monotonic time (ns)."""
    graph_.take({"kind": "topic", "topic": "/t", "subscribed_monotonic_ns": subscribed_ns})
    return graph_


LATCHED = {"durability": "transient_local"}


def test_all_messages_before_a_window_are_counted_also_long_before() -> None:
    stream = watched(graph(), records(), 300 * SECOND_NS, 301 * SECOND_NS).streams[0]
    assert (stream.messages, stream.before) == (0, 100)


def test_messages_that_a_publisher_keeps_for_new_readers_have_no_latency() -> None:
    rows = records(3)
    rows["source_ns"][0] = WALL_NS
    stream = only(rows, latched(graph(qos=LATCHED)))
    assert (stream.messages, stream.before) == (2, 1)
    assert stream.latency is not None and stream.latency.max_us == 100
    volatile = only(rows, latched(graph(qos={"durability": "volatile"})))
    assert (volatile.messages, volatile.before) == (3, 0)


def test_a_topic_to_which_the_probe_subscribed_in_the_window_is_known() -> None:
    late = numbers(records(), latched(graph(), SECOND_NS * 3 // 2))
    assert late.subscribed_s == {"/t": pytest.approx(0.5)}
    assert numbers(records(), latched(graph(), SECOND_NS // 2)).subscribed_s == {}


def test_a_publisher_whose_clock_is_behind_keeps_its_messages() -> None:
    rows = records()
    rows["source_ns"] -= 3600 * SECOND_NS
    stream = only(rows, latched(graph(same_host=None, qos=LATCHED)))
    assert (stream.messages, stream.before) == (100, 0)


def test_messages_after_the_clock_was_set_back_are_of_the_window_and_not_lost() -> None:
    rows = records()
    for name in ("taken_ns", "source_ns"):
        rows[name][50:] -= 20 * SECOND_NS
    stream = only(rows, latched(graph(qos=LATCHED), SECOND_NS // 2))
    assert (stream.messages, stream.before) == (100, 0)
    assert stream.faults is not None and stream.faults.lost == 0


def test_a_new_subscription_gets_the_kept_messages_again_and_they_are_not_fresh() -> None:
    """Message 1, from before the window, arrives again, and 40 was published just before."""
    before = records(1, monotonic_ns=SECOND_NS // 2)
    rows = np.concatenate([before, records(100, sequence=2 + np.arange(100))])
    rows["sequence"][41] = 1
    rows["source_ns"][41] = WALL_NS + SECOND_NS // 2
    rows["sequence"][42:] -= 1
    stream = only(rows, graph())
    assert stream.latency is not None and stream.latency.max_us == 100
    assert stream.faults is not None
    assert (stream.faults.lost, stream.faults.repeated) == (0, 1)
    assert stream.rate_hz == pytest.approx(100, rel=0.02)
    subscribed_ns = int(rows["monotonic_ns"][50]) - LATENCY_NS // 2
    resubscribed = only(rows, latched(graph(qos=LATCHED), subscribed_ns))
    assert (resubscribed.messages, resubscribed.before) == (99, 2)  # 50 was on its way


def test_lost_messages_are_infinitely_late() -> None:
    rows = np.delete(records(1000, hz=1000), np.arange(50, 950, 10))
    rows["source_ns"] -= np.random.default_rng(1).permutation(rows.size)
    stream = only(rows)
    assert stream.faults is not None and stream.faults.lost == 90
    latency = stream.latency
    assert latency is not None and latency.p50_us is not None
    assert latency.p50_us < 102 and latency.p95_us == latency.max_us == np.inf
    assert latency.count == 910
    document = json.loads(json.dumps(stream.as_json(), allow_nan=False))["latency"]
    assert document["p95_us"] is document["max_us"] is None
    assert document["reasons"]["p95_us"] == LOST


def test_a_percentile_of_too_few_messages_has_no_value() -> None:
    few = only(records(3)).latency
    assert few is not None and (few.p50_us, few.p95_us, few.p99_us) == (None, None, None)
    assert (few.max_us, few.count) == (100, 3)
    rows = records(500, hz=500)
    rows["source_ns"] -= np.random.default_rng(1).permutation(500)
    latency = only(rows).latency
    assert latency is not None and latency.p95_us is not None and latency.p99_us is None
    assert latency.as_json()["reasons"] == {"p99_us": TOO_FEW}


def test_rate_and_bytes_of_two_near_messages_are_those_of_the_window() -> None:
    rows = records(2)
    rows["monotonic_ns"][1] = rows["monotonic_ns"][0] + 10**6
    (stream,) = watched(graph(), rows, SECOND_NS, 31 * SECOND_NS).streams
    assert stream.rate_hz == pytest.approx(2 / 30)
    assert stream.bytes_per_s == pytest.approx(2 * 64 / 30)


def test_repeated_messages_do_not_raise_the_rate() -> None:
    rows = np.repeat(records(), 2)
    stream = only(rows)
    assert stream.rate_hz == pytest.approx(100) and stream.bytes_per_s == pytest.approx(6400)
    assert stream.faults is not None and stream.faults.repeated == 100


def test_bytes_per_second_are_those_until_the_publisher_ended() -> None:
    known = graph()
    known.take({"kind": "gone", "index": 0, "monotonic_ns": 2 * SECOND_NS})
    (stream,) = watched(known, records(), SECOND_NS, 11 * SECOND_NS).streams
    assert stream.gone and stream.bytes_per_s == pytest.approx(6400)
    known.take({"kind": "gone", "index": 0, "monotonic_ns": 12 * SECOND_NS})
    assert not watched(known, records(), SECOND_NS, 11 * SECOND_NS).streams[0].gone


def test_a_publisher_that_ended_at_its_only_message_has_no_rate() -> None:
    known = graph()
    known.take({"kind": "gone", "index": 0, "monotonic_ns": SECOND_NS})
    stream = only(records(1), known)
    assert (stream.messages, stream.rate_hz, stream.bytes_per_s) == (1, None, None)


def test_a_node_that_is_started_again_has_one_row() -> None:
    known = graph(2)
    for index in range(2):
        known.take({"kind": "stream", "index": index, "node": "/talker"})
    known.take({"kind": "gone", "index": 0, "monotonic_ns": SECOND_NS * 3 // 2})
    rows = records()
    rows["stream"][50:], rows["sequence"][50:] = 1, 1 + np.arange(50)
    rows = np.delete(rows, [20, 70])
    stream = only(rows, known)
    assert (stream.node, stream.messages, stream.publishers) == ("/talker", 98, 2)
    assert stream.gid == f"{1:032x}" and not stream.gone
    assert stream.faults is not None and stream.faults.lost == 2
    assert stream.rate_hz == pytest.approx(98, rel=0.02)


def test_publishers_of_one_name_at_one_time_have_a_row_each() -> None:
    known = graph(2)
    for index in range(2):
        known.take({"kind": "stream", "index": index, "node": "/twin"})
    rows = records()
    rows["stream"][1::2] = 1
    assert [stream.publishers for stream in numbers(rows, known).streams] == [1, 1]


def test_where_messages_have_only_a_mark_the_named_publishers_have_no_row() -> None:
    known = graph(2)
    for index in (2, 3):
        mark = {"kind": "stream", "index": index, "gid": f"{index:032x}", "topic": "/t"}
        known.take({**mark, "node": "", "mark": True, "qos": None, "same_host": None})
    rows = records(stream=2)
    rows["stream"][50:] = 3
    result = numbers(rows, known)
    assert [(s.node, s.messages, s.unattributed) for s in result.streams] == [("", 50, True)] * 2


def test_messages_that_are_published_in_a_scan_of_the_graph_have_no_latency() -> None:
    known, rows = graph(), records()
    for name in ("taken_ns", "monotonic_ns"):
        rows[name][30] += 5_000_000
    begin_ns = int(rows["source_ns"][30]) - 10
    known.take({"kind": "scan", "begin_ns": begin_ns, "end_ns": begin_ns + 5_000_000})
    stream = only(rows, known)
    assert stream.latency is not None
    assert (stream.messages, stream.latency.count, stream.latency.max_us) == (100, 99, 100)
    rows["stamp_ns"] = rows["source_ns"]
    stream = only(rows, known)
    assert stream.age is not None
    assert (stream.stamps.stamps, stream.age.count, stream.age.max_us) == (100, 99, 100)
    rows["stamp_ns"] = 0
    assert only(rows, known).stamps.zero == 100


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


def test_a_record_that_is_written_during_the_reading_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first reading has the time of the last record, but not what was written before it."""
    records(10).tofile(tmp_path / "records-000000.bin")
    fromfile, readings = np.fromfile, []

    def interrupted(*arguments: Any, **options: Any) -> Records:
        rows = fromfile(*arguments, **options)
        if not readings:
            for name in ("source_ns", "received_ns", "taken_ns"):
                rows[name][-1] = 0
        readings.append(rows)
        return rows

    monkeypatch.setattr(np, "fromfile", interrupted)
    rows = ProbeFiles(tmp_path).read_records()
    assert rows.size == 10 and np.all(rows["taken_ns"] > WALL_NS)
