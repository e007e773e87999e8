"""Scenarios for calls in which the suite is the peer: replies, wrong replies, overlapping calls."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .cell import Problem, Wire
from .group import GO_MARGIN_NS, HANG_S
from .host import waiting_per_core
from .payload import encoded, same
from .samples import CORRUPT, PROBE, TIMEOUT, Record
from .scenario import Bench, Scenario
from .spec import MILLISECOND_NS, SEED, SENDER_NODE, open_loop
from .wire import (
    REPLY,
    REQUEST,
    SIZE,
    UNREADABLE,
    await_line,
    counter_of,
    flip,
    go,
    lone_node,
    reply_to,
    stop,
    unit_of,
)  # fmt: skip

REPLY_CLAUSES = {"echo": "C-23", "ack": "C-23", "literal": "C-23", "encrypt": "C-40"}
TOGETHER = 3
"""Number of calls that the overlap scenario keeps open at once."""
CALLS, LATE, WRONG, UNANSWERED = 9, 1, (2, 3), 8
"""Calls of a client whose replies are checked, and which of them have a late, wrong or no reply."""
TIMEOUT_NS, ATTEMPTS = 500 * MILLISECOND_NS, 3
"""Timeout of these calls on an idle machine. If the suite needs half of it for a prompt reply, it
repeats them with a longer one."""


def served_bytes(kind: str, encoding: str) -> Scenario:
    """Check a server's replies byte by byte, and that it does not answer foreign requests."""

    def check(bench: Bench) -> list[Problem]:
        bench.need(f"reply.{kind}", f"encoding.{encoding}")
        literal = "granted" if kind == "literal" else ""
        changes = {"payload__bytes": SIZE, "payload__encoding": encoding, "reply": kind}
        spec = bench.lone_spec("service", "server", **changes, reply__literal=literal)
        problems = []
        with lone_node(bench, spec) as (node, wire):
            endpoint = await_line(node, "LISTENING", "C-06")["endpoints"][0]
            go(node)
            time.sleep(GO_MARGIN_NS / 1e9 + 0.02)
            for counter in (PROBE, 0, 1):
                request = encoded(SENDER_NODE << 48 | counter, 1, SIZE, SEED, encoding)
                expected = reply_to(kind, encoding, literal, request)
                wire.send(REQUEST, counter & 0xFFFF, request, endpoint)
                frame = wire.receive(HANG_S)
                data = frame[2] if frame is not None else b""
                if not same(data, expected, encoding):
                    text = f"{kind}: wrong reply to {encoding} request {counter:#x}: {data!r:.80}"
                    problems.append(Problem(REPLY_CLAUSES[kind], f"{node.label}: {text}"))
            stranger = encoded((SENDER_NODE + 1) << 48, 1, SIZE, SEED, encoding)
            wire.send(REQUEST, 9, stranger, endpoint)
            time.sleep(0.1)
            done, records, file_problems = stop(node)
        counts = {"received": 2, "recorded": 2, "foreign": 1, "probes": 1}
        done_counts = {name: done.get(name) for name in counts}
        if done_counts != counts or len(records) != 2:
            text = f"{node.label}: DONE reports {done_counts} and the file has {len(records)} "
            text += f"records; expected {counts} and 2 records"
            clause = "C-17" if done.get("probes") != 1 else "C-18"
            problems.append(Problem(clause, text))
        return problems + file_problems

    clauses = (REPLY_CLAUSES[kind], "C-17", "C-18")
    return Scenario(f"wire-served[{kind} {encoding}]", clauses, check)


def checked_replies(kind: str, encoding: str) -> Scenario:
    """Check a client that receives wrong replies, no reply, and a late reply."""

    def check(bench: Bench) -> list[Problem]:
        bench.need(f"reply.{kind}", f"encoding.{encoding}", "loop.open")
        timeout_ns = round(TIMEOUT_NS * max(1.0, waiting_per_core()))
        for _ in range(ATTEMPTS):
            problems, waited_ns = _replies_checked(bench, kind, encoding, timeout_ns)
            if waited_ns < timeout_ns // 2:
                break
            timeout_ns *= 3  # the suite itself was too slow, so a timeout is no breach
        return problems

    clauses = (REPLY_CLAUSES[kind], "C-21", "C-12", "C-16", "C-27")
    return Scenario(f"wire-replies[{kind} {encoding}]", clauses, check)


def _replies_checked(
    bench: Bench, kind: str, encoding: str, timeout_ns: int
) -> tuple[list[Problem], int]:
    """Return the breaches of a client, and the longest time (ns) until the suite's prompt replies.

    The late reply arrives while the last call is open, which has no reply.
    """
    literal = "granted" if kind == "literal" else ""
    # Kits have different code for blocking and for overlapping calls.
    overlapping = encoding == "text" and "async_client" in bench.cell.capabilities
    changes = {
        "payload__bytes": SIZE, "payload__encoding": encoding, "reply": kind,
        "reply__literal": literal, "timeout_ns": timeout_ns,
        "outstanding_max": 3 if overlapping else 1,
        **open_loop(CALLS, timeout_ns // (10 * MILLISECOND_NS)),
    }  # fmt: skip
    spec = bench.lone_spec("service", "client", **changes)
    answer = _answers(kind, encoding, literal)
    with lone_node(bench, spec) as (node, wire):
        server = _Server(wire, encoding, answer, 1.35 * timeout_ns / 1e9)
        server.start()
        try:
            go(node)
            await_line(node, "SENT", "C-14")
            done, records, problems = stop(node)
        finally:
            server.end()
    breaches = [*_reply_breaches(kind, done, sorted(records))]
    for record in records:
        expected = encoded(record.seq, record.begin_ns, SIZE, SEED, encoding)
        if not same(server.requests.get(record.counter, expected), expected, encoding):
            text = f"request {record.counter} does not carry the begin_ns of its record"
            breaches.append(("C-27", text))
    for clause, text in breaches:
        problems.append(Problem(clause, f"{node.label}: {kind} {encoding}: {text}"))
    begins_ns = {record.counter: record.begin_ns for record in records}
    waits_ns = (at_ns - begins_ns.get(n, at_ns) for n, at_ns in server.answered_ns.items())
    return problems, max(waits_ns, default=0)


def _answers(kind: str, encoding: str, literal: str) -> Callable[[int, bytes], bytes | None]:
    """Return a function that maps a call's number and request to its reply."""
    unit = unit_of(encoding)

    def wrong(reply: bytes) -> tuple[bytes, bytes]:
        """Return two replies that are slightly wrong."""
        if encoding == "record":
            record = json.loads(reply)
            record["pose"]["orientation"]["w"] += 1.0
            return json.dumps(record).encode(), UNREADABLE
        wrong_at = {"echo": 16 * unit + 9, "encrypt": len(reply) - 9}.get(kind, 0)
        return flip(reply, wrong_at), reply[:-1]

    def answered(number: int, request: bytes) -> bytes | None:
        if number == UNANSWERED:
            return None
        correct = reply_to(kind, encoding, literal, request)
        return wrong(correct)[WRONG.index(number)] if number in WRONG else correct

    return answered


class _Server(threading.Thread):
    """The suite as a server, which answers call LATE after `late_s` and all others immediately.

    `requests` and `answered_ns` have the requests and the times of the prompt replies, by counter.
    """

    def __init__(
        self,
        wire: Wire,
        encoding: str,
        answer: Callable[[int, bytes], bytes | None],
        late_s: float,
    ) -> None:
        super().__init__()
        self._wire, self._encoding, self._answer, self._late_s = wire, encoding, answer, late_s
        self._ended = threading.Event()
        self.requests: dict[int, bytes] = {}
        self.answered_ns: dict[int, int] = {}

    def run(self) -> None:
        late, due_s = None, 0.0
        while not self._ended.is_set():
            frame = self._wire.receive(0.02)
            if frame is not None and frame[0] == REQUEST:
                counter = counter_of(frame[2], self._encoding)
                self.requests[counter] = frame[2]
                if counter == LATE:
                    late, due_s = frame, time.monotonic() + self._late_s
                elif self._reply(frame):
                    self.answered_ns[counter] = time.monotonic_ns()
            if late is not None and time.monotonic() >= due_s:
                self._reply(late)
                late = None

    def _reply(self, frame: tuple[int, int, bytes, str]) -> bool:
        """Send the reply to a request; return whether the request has one."""
        reply = self._answer(counter_of(frame[2], self._encoding), frame[2])
        if reply is not None:
            with contextlib.suppress(OSError):
                self._wire.send(REPLY, frame[1], reply, frame[3])
        return reply is not None

    def end(self) -> None:
        """End the thread and wait for its end."""
        self._ended.set()
        self.join()


def _reply_breaches(
    kind: str, done: dict[str, Any], records: list[Record]
) -> Iterator[tuple[str, str]]:
    by_flag = {flag: [r.counter for r in records if r.flags & flag] for flag in (CORRUPT, TIMEOUT)}
    if by_flag[CORRUPT] != [*WRONG]:
        clause = "C-21" if kind == "echo" else REPLY_CLAUSES[kind]
        yield clause, f"calls flagged corrupt: {by_flag[CORRUPT]}; replies {WRONG} were wrong"
    if by_flag[TIMEOUT] != [LATE, UNANSWERED]:
        text = (
            f"calls flagged timeout: {by_flag[TIMEOUT]}; call {LATE} had a late reply, call "
            f"{UNANSWERED} none"
        )
        yield "C-12", text
    expected = len(records) - len(by_flag[TIMEOUT])
    if done.get("received") != expected:
        text = f"DONE reports received {done.get('received')}; {expected} replies were in time"
        yield "C-16", text
    if done.get("corrupt") != 2:
        yield "C-21", f"DONE reports corrupt {done.get('corrupt')}; 2 replies were wrong"


def overlapping(kind: str, encoding: str) -> Scenario:
    """Check three overlapping calls, which the suite answers in reverse order."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("async_client", f"reply.{kind}", f"encoding.{encoding}", "loop.open")
        literal = "granted" if kind == "literal" else ""
        changes = {
            "payload__bytes": SIZE, "payload__encoding": encoding, "reply": kind,
            "reply__literal": literal, "outstanding_max": TOGETHER, **open_loop(9, 40),
        }  # fmt: skip
        spec = bench.lone_spec("service", "client", **changes)
        problems: list[Problem] = []
        with lone_node(bench, spec) as (node, wire):
            go(node)
            for _ in range(3):
                open_frames = [wire.receive(HANG_S) for _ in range(TOGETHER)]
                if None in open_frames:
                    text = f"{TOGETHER} calls may be open, but the node did not send the next call"
                    return [Problem("C-33", f"{node.label}: {text}; {node.last_output()}")]
                if wire.receive(0.12) is not None:
                    text = f"the node sent a call while outstanding_max = {TOGETHER} were open"
                    problems.append(Problem("C-12", f"{node.label}: {text}"))
                for frame in reversed(open_frames):
                    if frame is not None:
                        reply = reply_to(kind, encoding, literal, frame[2])
                        wire.send(REPLY, frame[1], reply, frame[3])
                        time.sleep(0.02)  # wakes the threads of a kit one after the other
            await_line(node, "SENT", "C-14")
            done, records, _ = stop(node)
        texts = _overlap_breaches(done, sorted(records))
        return problems + [Problem(c, f"{node.label}: {kind} {encoding}: {t}") for c, t in texts]

    return Scenario(f"wire-overlap[{kind} {encoding}]", ("C-33", "C-12", "C-16"), check)


def _overlap_breaches(done: dict[str, Any], records: list[Record]) -> Iterator[tuple[str, str]]:
    if done.get("received") != 9 or done.get("corrupt") != 0 or len(records) != 9:
        counts = {name: done.get(name) for name in ("sent", "received", "recorded", "corrupt")}
        yield "C-33", f"9 calls were answered in reverse order; DONE reports {counts}"
        return
    for first in range(0, 9, TOGETHER):
        ends = [record.end_ns for record in records[first : first + TOGETHER]]
        if ends != sorted(ends, reverse=True):
            text = f"calls {first} to {first + 2} were answered in reverse order but end at {ends}"

            yield "C-33", text


def scenarios(patterns: list[str]) -> list[Scenario]:
    if "service" not in patterns:
        return []
    kinds = [("echo", "bytes"), ("echo", "text"), ("ack", "text"), ("literal", "bytes")]
    kinds.append(("encrypt", "bytes"))
    kinds += [(kind, "record") for kind in ("echo", "ack", "literal")]
    all_scenarios = [served_bytes(kind, encoding) for kind, encoding in kinds]
    all_scenarios += [checked_replies(kind, encoding) for kind, encoding in kinds]
    overlaps = (("echo", "bytes"), ("ack", "record"), ("literal", "text"))
    return all_scenarios + [overlapping(kind, encoding) for kind, encoding in overlaps]
