"""Runs of nodes of the Python and C++ kits: pairs of languages, faults, exit codes."""

from __future__ import annotations

import itertools
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from pairs import (
    COUNTER,
    FAILED,
    LISTENERS,
    TIMEOUT,
    UNKNOWN,
    WARM_UP,
    Node,
    counters,
    run_pair,
    settings,
    spec,
)

LANGUAGES = ("python", "cpp")
PAIRS = [(a, b) for a in LANGUAGES for b in LANGUAGES]
SHAPES: dict[str, dict[str, Any]] = {
    "bytes": {},
    "text": {"payload__encoding": "text", "action__feedback": 2},
    "empty": {"payload__bytes": 0},
    "short": {"payload__bytes": 5, "reply": "ack"},
    # A long period, because a socket's buffer holds only three of these messages.
    "long": {"payload__bytes": 60_000, "period_ns": 20_000_000, "duration_ns": 1_000_000_000},
    "literal": {"payload__literal": "hello", "reply": "literal", "reply__literal": "hi"},
    "header": {"verify": "header", "reply": "ack", "spin_ns": 100_000},
    "pipelined": {"outstanding_max": 8, "action__feedback": 3},
}
CELLS = [("loopback", pattern) for pattern in LISTENERS]
CELLS += [("udp", pattern) for pattern in LISTENERS if pattern != "action"]
TRIPLES = [
    (*cell, PAIRS[(row + column) % len(PAIRS)], shape)
    for row, cell in enumerate(CELLS)
    for column, shape in enumerate(SHAPES)
]
"""A pair of languages for each cell and shape: every two of the three occur together."""
KIND = {"topic": 0, "service": 1, "pingpong": 1, "action": 2}


def test_every_two_of_cell_shape_and_pair_occur_together() -> None:
    cells = [(middleware, pattern) for middleware, pattern, _, _ in TRIPLES]
    pairs, shapes = ([triple[at] for triple in TRIPLES] for at in (2, 3))
    assert {*zip(cells, pairs, strict=True)} == {*itertools.product(CELLS, PAIRS)}
    assert {*zip(shapes, pairs, strict=True)} == {*itertools.product(SHAPES, PAIRS)}


@pytest.mark.parametrize(
    ("middleware", "pattern", "pair", "shape"),
    TRIPLES,
    ids=["-".join([*triple[:2], *triple[2], triple[3]]) for triple in TRIPLES],
)
def test_pair(
    middleware: str, pattern: str, pair: tuple[str, str], shape: str, tmp_path: Path
) -> None:
    changes = SHAPES[shape]
    if middleware == "udp":  # the buffer must hold a whole run if the reader gets no CPU time
        changes = {**changes, "settings__receive_buffer_bytes": 4_000_000}
    found = run_pair(middleware, pair, pattern, tmp_path, **changes)
    assert found.codes == [0, 0]
    assert (found.sent["sent"], found.sent["scheduled"], found.sent["skipped"]) == (50, 50, 0)
    assert found.done[0]["received"] == 50
    assert found.done[1]["received"] == (0 if pattern == "topic" else 50)
    for done, records in zip(found.done, found.records, strict=True):
        assert (done["foreign"], done["corrupt"], done["overflow"]) == (0, 0, 0)
        assert {record[7] for record in records} == {0}
        per_message = 1 if pattern != "action" else 2 + changes.get("action__feedback", 0)
        assert done["recorded"] == len(records) == 50 * per_message
        assert counters(records, KIND[pattern]) == list(range(50))
    period_ns = changes.get("period_ns", 2_000_000)
    for seq, intended_ns, begin_ns, end_ns, *_ in found.records[1]:
        if intended_ns != UNKNOWN:
            assert intended_ns == found.start_ns + period_ns * (seq & COUNTER)
            assert found.start_ns <= begin_ns <= end_ns


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pattern", ["service", "action", "pingpong"])
def test_a_closed_loop_makes_exactly_count_calls(
    language: str, pattern: str, tmp_path: Path
) -> None:
    pair = (language, language)
    found = run_pair("loopback", pair, pattern, tmp_path, loop="closed", count=200)
    assert found.sent["sent"] == found.sent["scheduled"] == found.done[1]["received"] == 200
    calls = [record for record in found.records[1] if record[6] in (1, 5)]
    assert len(calls) == 200
    assert all(record[1] == record[2] for record in calls)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pattern", LISTENERS)
def test_native_pacing_takes_each_slot_once(language: str, pattern: str, tmp_path: Path) -> None:
    period_ns = 10_000_000
    window = {"phase_ns": period_ns, "period_ns": period_ns, "duration_ns": 31 * period_ns}
    found = run_pair("loopback", (language,) * 2, pattern, tmp_path, pacing="native", **window)
    sent = counters(found.records[1], KIND[pattern])
    assert len(sent) == len(set(sent)) == found.sent["sent"] > 0
    assert found.sent["sent"] + found.sent["skipped"] == found.sent["scheduled"] == 30
    for record in found.records[1]:
        if record[1] != UNKNOWN:
            assert record[2] >= max(found.start_ns, record[1] - period_ns // 2)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_exactly_the_planted_losses_are_missing(pair: tuple[str, str], tmp_path: Path) -> None:
    planted = {"drop_every": 7, "drop_counters": "0,20", "duplicate_every": 10}
    found = run_pair("loopback", pair, "topic", tmp_path, planted)
    lost = {c for c in range(50) if c % 7 == 6} | {0, 20}
    arrived = counters(found.records[0], 0)
    assert set(range(50)) - set(arrived) == lost
    twice = {c for c in range(50) if c % 10 == 9} - lost
    assert sorted(arrived) == sorted([*(set(range(50)) - lost), *twice])
    assert found.sent["sent"] == 50
    assert found.ready[1]["guarantee"]["delivery"] == "best_effort"


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("pattern", ["service", "action"])
def test_a_lost_request_is_a_timeout(pair: tuple[str, str], pattern: str, tmp_path: Path) -> None:
    planted = {"drop_counters": "3,5"}
    found = run_pair(
        "loopback", pair, pattern, tmp_path, planted, timeout_ns=60_000_000, period_ns=5_000_000
    )
    late = [record for record in found.records[1] if record[7] & TIMEOUT]
    kinds = {1} if pattern == "service" else {2, 5}
    assert {(record[0] & COUNTER, record[6]) for record in late} == {
        (counter, kind) for counter in (3, 5) for kind in kinds
    }
    assert all(record[3] == UNKNOWN for record in late)
    assert found.done[1]["received"] == found.sent["sent"] - 2 == found.sent["scheduled"] - 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_warm_up_and_overflow_are_flagged(language: str, tmp_path: Path) -> None:
    changes = {"warmup_ns": 20_000_000, "record__capacity": 30}
    found = run_pair("loopback", (language,) * 2, "service", tmp_path, **changes)
    assert [done["overflow"] for done in found.done] == [20, 20]
    flagged = {record[0] & COUNTER for record in found.records[1] if record[7] & WARM_UP}
    assert flagged == set(range(10))


def start(
    language: str, folder: Path, planted: dict[str, Any] | None = None, **changes: Any
) -> Node:
    values = spec("topic", "subscriber", 1, [2], **changes)
    return Node(f"loopback/{language}", values | settings("loopback", **(planted or {})), folder)


@pytest.mark.parametrize("language", LANGUAGES)
def test_end_of_input_ends_with_5(language: str, tmp_path: Path) -> None:
    node = start(language, tmp_path, run=f"eof{language}")
    node.expect("LISTENING")
    node.expect("READY")
    node.process.stdin.close()  # type: ignore[union-attr]
    assert node.code() == 5
    node.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_end_of_input_ends_a_hanging_node_with_5(language: str, tmp_path: Path) -> None:
    node = start(language, tmp_path, {"hang_at": "before_ready"}, run=f"hang{language}")
    node.expect("LISTENING")
    node.process.stdin.close()  # type: ignore[union-attr]
    assert node.code() == 5
    node.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_sigterm_and_planted_death(language: str, tmp_path: Path) -> None:
    node = start(language, tmp_path / "term", run=f"term{language}")
    node.expect("LISTENING")
    node.expect("READY")
    node.process.send_signal(signal.SIGTERM)
    assert node.code() == -signal.SIGTERM
    node.close()
    node = start(language, tmp_path / "die", {"die_at": "before_ready"}, run=f"die{language}")
    node.expect("LISTENING")
    assert node.code() == -signal.SIGKILL
    node.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_start_in_the_past_is_refused(language: str, tmp_path: Path) -> None:
    node = start(language, tmp_path, run=f"past{language}")
    node.expect("LISTENING")
    node.expect("READY")
    node.write(f"GO {time.monotonic_ns() - 1}")
    assert node.expect("ERROR")["code"] == 2
    assert node.code() == 2
    node.close()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("changes", "code", "key"),
    [
        ({"period_ns": "5"}, 2, "period_ns"),
        ({"node": True}, 2, "node"),
        ({"settings__surprise": 1}, 2, "settings.surprise"),
        ({"settings__die_at": 5}, 2, "settings.die_at"),
        ({"declared__payload_bytes_max": 63}, 3, None),
    ],
)
def test_a_bad_spec_is_refused(
    language: str, changes: dict[str, Any], code: int, key: str | None, tmp_path: Path
) -> None:
    values = spec("topic", "subscriber", 1, [2]) | settings("loopback")
    values |= {name.replace("__", "."): value for name, value in changes.items()}
    node = Node(f"loopback/{language}", values, tmp_path)
    error = node.expect("ERROR")
    assert (error["code"], error["key"], node.code()) == (code, key, code)
    node.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_stop_ends_a_schedule_early(language: str, tmp_path: Path) -> None:
    values = spec("topic", "publisher", 2, [1], run=f"stop{language}", duration_ns=10**11)
    values |= settings("udp") | {"peers.endpoints": ["127.0.0.1:9"]}
    node = Node(f"udp/{language}", values, tmp_path)
    node.expect("READY")
    node.write(f"GO {time.monotonic_ns() + 300_000_000}")
    time.sleep(0.5)
    node.write("STOP")
    sent = node.expect("SENT")
    assert sent["sent"] < sent["scheduled"] == 50_000
    assert node.expect("DONE")["sent"] == sent["sent"]
    assert node.code() == 0
    node.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_sends_to_a_peer_that_has_ended_fail(language: str, tmp_path: Path) -> None:
    token = f"gone{language}"
    listener = start("python", tmp_path / "listener", run=token)
    endpoints = listener.expect("LISTENING")["endpoints"]
    listener.expect("READY")
    values = spec("topic", "publisher", 2, [1], run=token) | settings("loopback")
    node = Node(f"loopback/{language}", values | {"peers.endpoints": endpoints}, tmp_path / "p")
    node.expect("READY")
    listener.close()
    node.write(f"GO {time.monotonic_ns() + 300_000_000}")
    assert node.expect("SENT")["sent"] == 0
    node.write("STOP")
    node.expect("DONE")
    assert node.code() == 0
    assert {record[7] for record in node.records()} == {FAILED}
    node.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_strangers_are_counted_and_not_recorded(language: str, tmp_path: Path) -> None:
    values = spec("service", "server", 1, [2], run=f"strange{language}") | settings("udp")
    node = Node(f"udp/{language}", values, tmp_path)
    host, _, port = node.expect("LISTENING")["endpoints"][0].rpartition(":")
    node.expect("READY")
    node.write(f"GO {time.monotonic_ns() + 300_000_000}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(struct.pack("<Qq", 9 << 48, 1) + bytes(48), (host, int(port)))
        stranger.sendto(b"abc", (host, int(port)))
    time.sleep(0.05)
    node.write("STOP")
    done = node.expect("DONE")
    assert (done["foreign"], done["corrupt"], done["received"], done["recorded"]) == (1, 1, 0, 0)
    node.close()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("shape", ["bytes", "literal"])
def test_a_late_reply_does_not_answer_the_next_call(
    language: str, shape: str, tmp_path: Path
) -> None:
    """The server of this test answers call 2 only after call 3 has arrived."""
    changes = SHAPES[shape] | {"timeout_ns": 50_000_000, "loop": "closed", "count": 6}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(20)
        values = spec("service", "client", 2, [1], **changes) | settings("udp")
        values["peers.endpoints"] = [f"127.0.0.1:{server.getsockname()[1]}"]
        node = Node(f"udp/{language}", values, tmp_path)

        def answer(request: tuple[bytes, Any]) -> None:
            reply = b"hi" if shape == "literal" else request[0]
            server.sendto(reply, request[1])

        answer(server.recvfrom(65_535))
        node.expect("READY")
        node.write(f"GO {time.monotonic_ns() + 300_000_000}")
        requests = []
        for counter in range(6):
            requests.append(server.recvfrom(65_535))
            if counter == 3:
                answer(requests[2])
            if counter != 2:
                answer(requests[counter])
        sent = node.expect("SENT")
        node.write("STOP")
        done = node.expect("DONE")
        assert node.code() == 0
        assert (sent["sent"], done["received"], done["corrupt"]) == (6, 5, 0)
        late = [record[0] & COUNTER for record in node.records() if record[7] & TIMEOUT]
        assert late == [2]
        node.close()
