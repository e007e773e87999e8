"""Test the suite as a server of a client: which replies are wrong, late or absent, and breaches."""

from __future__ import annotations

import queue
import time
from typing import Any

import pytest

from contract.conformance.payload import encoded
from contract.conformance.samples import CORRUPT, TIMEOUT, UNKNOWN_NS, Record
from contract.conformance.spec import SEED, SENDER_NODE
from contract.conformance.wire import REPLY, REQUEST, SIZE
from contract.conformance.wire_calls import (
    CALLS,
    LATE,
    UNANSWERED,
    WRONG,
    _answers,
    _reply_breaches,
    _Server,
)

LATE_S = 0.2
DONE = {"received": CALLS - 2, "corrupt": 2}
FLAGS = {LATE: TIMEOUT, UNANSWERED: TIMEOUT, **dict.fromkeys(WRONG, CORRUPT)}


class FakeWire:
    """A wire with requests that have arrived, and the (time, number, data) of each reply."""

    endpoint = "here"

    def __init__(self, requests: dict[int, bytes]) -> None:
        self._frames: queue.Queue[tuple[int, int, bytes, str]] = queue.Queue()
        for number, data in requests.items():
            self._frames.put((REQUEST, number, data, "client"))
        self.replies: list[tuple[float, int, bytes]] = []

    def receive(self, timeout_s: float) -> tuple[int, int, bytes, str] | None:
        try:
            return self._frames.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def send(self, kind: int, number: int, data: bytes, endpoint: str) -> None:
        assert (kind, endpoint) == (REPLY, "client")
        self.replies.append((time.monotonic(), number, data))

    def close(self) -> None:
        pass


def test_one_reply_is_late_two_are_wrong_and_one_is_absent() -> None:
    requests = {
        number: encoded(SENDER_NODE << 48 | number, 1, SIZE, SEED, "bytes")
        for number in range(CALLS)
    }
    wire, begun_s = FakeWire(requests), time.monotonic()
    server = _Server(wire, "bytes", _answers("echo", "bytes", ""), LATE_S)
    server.start()
    while len(wire.replies) < CALLS - 1:
        time.sleep(0.01)
    server.end()
    prompt = [number for number in range(CALLS) if number not in (LATE, UNANSWERED)]
    assert sorted(number for _, number, _ in wire.replies) == sorted([*prompt, LATE])
    (late_s,) = (at_s for at_s, number, _ in wire.replies if number == LATE)
    assert late_s - begun_s >= LATE_S
    wrong = [number for _, number, data in wire.replies if data != requests[number]]
    assert tuple(wrong) == WRONG
    assert server.requests == requests and set(server.answered_ns) == set(prompt)


def records(flags: dict[int, int]) -> list[Record]:
    return [
        Record(n, 0, 0, UNKNOWN_NS if flags.get(n) == TIMEOUT else 1, SIZE, 1, 1, flags.get(n, 0))
        for n in range(CALLS)
    ]


@pytest.mark.parametrize(
    ("flags", "done", "clauses"),
    [
        (FLAGS, DONE, []),
        ({**FLAGS, 5: TIMEOUT}, {**DONE, "received": CALLS - 3}, ["C-12"]),
        ({**FLAGS, LATE: 0}, {**DONE, "received": CALLS - 1}, ["C-12"]),
        (FLAGS, {**DONE, "received": CALLS}, ["C-16"]),
        ({**FLAGS, WRONG[0]: 0}, {**DONE, "corrupt": 1}, ["C-21", "C-21"]),
    ],
)
def test_each_wrong_flag_and_each_wrong_count_is_a_breach(
    flags: dict[int, int], done: dict[str, Any], clauses: list[str]
) -> None:
    breaches = _reply_breaches("echo", done, records(flags))
    assert [clause for clause, _ in breaches] == clauses
