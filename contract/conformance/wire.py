"""Scenarios in which the suite is the peer on the wire and sends faulty messages.

They apply to middleware with a `wire.py`, which sends records as JSON. These scenarios test code of
the kits, which is the same for all middleware.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

from .audit import some
from .cell import Broken, Problem, Skipped, Wire
from .group import GO_MARGIN_NS, HANG_S
from .payload import SIZE_CLAUSES, answer, encoded, encrypted, same
from .payload import record as record_of
from .payloads import GOLDEN_SIZES, RECORD_SIZES
from .process import NodeProcess
from .roles import CALLING_ROLES, SENDING_ROLES
from .samples import CORRUPT, PROBE, Record, read_samples
from .scenario import Bench, Scenario
from .spec import MILLISECOND_NS, READY_TIMEOUT_MS, SEED, SENDER_NODE, WIRE_ENCODINGS, open_loop

MESSAGE, REQUEST, REPLY = range(3)
SIZE = 200
SENT_SIZES = (*GOLDEN_SIZES, 23, 24, 31, 33, 47, 48, 50)
UNREADABLE = b'{"header": {"seq": '


@contextlib.contextmanager
def lone_node(bench: Bench, spec: dict[str, Any]) -> Iterator[tuple[NodeProcess, Wire]]:
    """Start one node with the suite as its peer; yield the node and the wire, and stop both."""
    wire: Wire = made_wire(bench, spec["run"])
    if spec["role"] in SENDING_ROLES:
        spec["peers.endpoints"] = [wire.endpoint]
    else:
        spec["peers.count"] = 0  # the suite connects after READY, with its first frame
    if spec["role"] in CALLING_ROLES:
        wire = AnsweringProbes(wire, spec)
    node = bench.single(spec)
    try:
        yield node, wire
    finally:
        node.kill()
        wire.close()


class AnsweringProbes:
    """A wire that answers a client's probes and returns all other frames."""

    def __init__(self, wire: Wire, spec: dict[str, Any]) -> None:
        self.endpoint = wire.endpoint
        self.send = wire.send
        self._wire, self._spec = wire, spec
        self._frames: queue.Queue[tuple[int, int, bytes, str]] = queue.Queue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        kind, encoding = self._spec["reply"], self._spec["payload.encoding"]
        while not self._ended.is_set():
            frame = self._wire.receive(0.1)
            if frame is None:
                continue
            if frame[0] != REQUEST or counter_of(frame[2], encoding) != PROBE:
                self._frames.put(frame)
                continue
            reply = reply_to(kind, encoding, self._spec["reply.literal"], frame[2])
            with contextlib.suppress(OSError):
                self.send(REPLY, frame[1], reply, frame[3])

    def receive(self, timeout_s: float) -> tuple[int, int, bytes, str] | None:
        try:
            return self._frames.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._wire.close()


def counter_of(request: bytes, encoding: str) -> int:
    """Return the counter of a payload in its form on the wire (C-17)."""
    if encoding == "record":
        seq = int(json.loads(request)["header"]["seq"])
    else:
        head = bytes.fromhex(request[:16].decode()) if encoding == "text" else request[:8]
        seq = int.from_bytes(head, "little")
    return seq & PROBE


def reply_to(kind: str, encoding: str, literal: str, request: bytes) -> bytes:
    """Return a server's reply to a request, both in their form on the wire."""
    if encoding == "record":
        return json.dumps(answer(json.loads(request), kind, literal)).encode()
    if kind == "encrypt":
        return encrypted(request)
    return {"echo": request, "ack": request[: 8 * unit_of(encoding)]}.get(kind, literal.encode())


def await_line(node: NodeProcess, keyword: str, clause: str) -> dict[str, Any]:
    """Wait for a line and return its fields. Raise Broken with `clause` if it is missing."""
    line = node.wait_line(keyword, READY_TIMEOUT_MS / 1000 + HANG_S)
    if line is None or line.fields is None:
        raise Broken(clause, f"{node.label}: no {keyword} line; {node.last_output()}")
    return line.fields


def go(node: NodeProcess) -> int:
    """Wait for READY, send GO, and return the start in ns."""
    await_line(node, "READY", "C-07")
    start_ns = time.monotonic_ns() + GO_MARGIN_NS
    node.go(start_ns)
    return start_ns


def stop(node: NodeProcess) -> tuple[dict[str, Any], list[Record], list[Problem]]:
    """Send STOP; return the fields of DONE, the records, and the breaches of the files."""
    node.write("STOP\n")
    done = await_line(node, "DONE", "C-15")
    node.wait_exit(HANG_S)
    samples = read_samples(node.out, node.spec, node.label)
    return done, samples.records, samples.problems


def made_wire(bench: Bench, token: str) -> Wire:
    """Return the suite's side of the wire. Raise Skipped if the middleware has no `wire.py`."""
    bench.need_own_host("the suite's side of the wire")
    if bench.cell.wire is None:
        raise Skipped("the middleware's folder has no wire.py, so the suite cannot be the peer")
    return bench.cell.wire(token)


def unit_of(encoding: str) -> int:
    """Return the number of characters or bytes per byte of the header."""
    return 2 if encoding == "text" else 1


def sent_bytes(encoding: str) -> Scenario:
    """Check a publisher's messages byte by byte."""

    def check(bench: Bench) -> list[Problem]:
        bench.need(f"encoding.{encoding}")
        problems: list[Problem] = []
        clause = SIZE_CLAUSES[encoding]
        for size in RECORD_SIZES if encoding == "record" else SENT_SIZES:
            if size < bench.cell.bytes_min(encoding):
                continue
            changes = {"payload__bytes": size, "payload__encoding": encoding, **open_loop(4, 5)}
            spec = bench.lone_spec("topic", "publisher", **changes)
            with lone_node(bench, spec) as (node, wire):
                go(node)
                frames = [wire.receive(HANG_S) for _ in range(4)]
                await_line(node, "SENT", "C-14")
                _, records, _ = stop(node)
            for record, frame in zip(sorted(records), frames, strict=False):
                data = frame[2] if frame is not None else b""
                seq = SENDER_NODE << 48 | record.counter
                expected = encoded(seq, record.begin_ns, size, SEED, encoding)
                if not same(data, expected, encoding):
                    differences = (
                        i for i in range(len(expected)) if data[i : i + 1] != expected[i : i + 1]
                    )
                    at = next(differences, size)
                    text = f"{size} {encoding}: message {record.counter} has {len(data)} bytes; "
                    text += f"at offset {at}: found {data[at : at + 8]!r}, expected "
                    text += f"{expected[at : at + 8]!r}"
                    problems.append(Problem(clause, f"{node.label}: {text}"))
                    break
            if len(records) != 4:
                problems.append(Problem("C-10", f"{node.label}: found {len(records)} of 4 records"))
        return problems

    return Scenario(f"wire-sent[{encoding}]", (SIZE_CLAUSES[encoding], "C-17"), check)


def sent_literal(bench: Bench) -> list[Problem]:
    """Check that a literal is the whole payload, without a sequence or time."""
    bench.need("literal")
    literal = "Hello, this is a literal of 35 bytes"
    spec = bench.lone_spec("topic", "publisher", payload__literal=literal, **open_loop(4, 5))
    with lone_node(bench, spec) as (node, wire):
        go(node)
        frames = [wire.receive(HANG_S) for _ in range(4)]
        await_line(node, "SENT", "C-14")
        _, _, problems = stop(node)
    for frame in frames:
        if frame is None or frame[2] != literal.encode():
            data = frame[2] if frame is not None else None
            text = f"{node.label}: found {data!r} on the wire, expected {literal.encode()!r}"
            return [*problems, Problem("C-22", text)]
    return problems


def flip(data: bytes, offset: int) -> bytes:
    """Return `data` with a different character or byte at `offset`."""
    replacement = b"B" if data[offset : offset + 1] == b"A" else b"A"
    return data[:offset] + replacement + data[offset + 1 :]


def plants(encoding: str, now_ns: int) -> list[tuple[str, int, bytes]]:
    """Return (kind, counter, payload) for messages to send to a subscriber.

    Kinds: good, corrupt, unreadable, foreign, probe.
    """
    unit = unit_of(encoding)

    def payload(counter: int, node: int = SENDER_NODE, seed: int = SEED) -> bytes:
        return encoded(node << 48 | counter, now_ns + counter, SIZE, seed, encoding)

    corrupt = [
        ("corrupt", 4, flip(payload(4), SIZE - 8 * unit - 1)),
        ("corrupt", 5, flip(payload(5), 16 * unit + 9)),
        ("corrupt", 6, flip(payload(6), SIZE - 1)),
        ("corrupt", 7, payload(7)[:-1]),
        ("corrupt", 8, payload(8) + b"A"),
    ]
    if encoding == "record":
        corrupt = list(_corrupt_records(now_ns))
    return [
        ("probe", PROBE, payload(PROBE)),
        ("good", 0, payload(0)),
        ("good", 1, payload(1)),
        ("good", 1, payload(1)),
        ("foreign", 2, payload(2, node=SENDER_NODE + 1)),
        ("foreign", 3, payload(3, seed=SEED + 1)),
        *corrupt,
        ("good", 10, payload(10)),
        ("good", 9, payload(9)),
    ]


def _corrupt_records(now_ns: int) -> Iterator[tuple[str, int, bytes]]:
    """Yield (kind, counter, payload) for corrupt and unreadable records."""

    def good_record(counter: int) -> dict[str, Any]:
        return record_of(SENDER_NODE << 48 | counter, now_ns + counter, SIZE, SEED)

    def moved(counter: int) -> dict[str, Any]:
        record = good_record(counter)
        record["pose"]["position"]["y"] += 1 / 1024
        return record

    last = good_record(5)["samples"][-1]
    changed_records = {
        4: {**good_record(4), "samples": good_record(4)["samples"][:-1]},
        5: {**good_record(5), "samples": [*good_record(5)["samples"][:-1], {**last, "state": 256}]},
        6: {**good_record(6), "trailer": {"seq": str(SENDER_NODE << 48 | 7)}},
        7: moved(7),
        8: {**good_record(8), "samples": [*good_record(8)["samples"], last]},
    }
    for counter, record in changed_records.items():
        yield "corrupt", counter, json.dumps(record).encode()
    yield "unreadable", 11, UNREADABLE
    yield "unreadable", 12, json.dumps({**good_record(12), "name": 12}).encode()


def received_bytes(encoding: str) -> Scenario:
    """Check a subscriber that receives valid, corrupt, foreign, repeated and reordered messages."""

    def check(bench: Bench) -> list[Problem]:
        bench.need(f"encoding.{encoding}")
        changes = {"payload__bytes": SIZE, "payload__encoding": encoding}
        spec = bench.lone_spec("topic", "subscriber", **changes)
        with lone_node(bench, spec) as (node, wire):
            endpoint = await_line(node, "LISTENING", "C-06")["endpoints"][0]
            start_ns = go(node)
            time.sleep(max(0, start_ns + 20 * MILLISECOND_NS - time.monotonic_ns()) / 1e9)
            planted = plants(encoding, time.monotonic_ns())
            for _, counter, data in planted:
                wire.send(MESSAGE, counter & 0xFFFF, data, endpoint)
            time.sleep(0.1)
            done, records, problems = stop(node)
        texts = _plant_breaches(planted, done, records)
        return problems + [Problem(c, f"{node.label}: {encoding}: {t}") for c, t in texts]

    clauses = ("C-21", "C-17", "C-18", "C-16", *(("C-32",) if encoding == "record" else ()))
    return Scenario(f"wire-received[{encoding}]", clauses, check)


def _plant_breaches(
    planted: list[tuple[str, int, bytes]], done: dict[str, Any], records: list[Record]
) -> Iterator[tuple[str, str]]:
    sent = {kind: sorted(c for k, c, _ in planted if k == kind) for kind in
            ("good", "corrupt", "unreadable", "foreign", "probe")}  # fmt: skip
    counts = {
        "foreign": ("C-18", len(sent["foreign"])),
        "corrupt": ("C-21", len(sent["corrupt"]) + len(sent["unreadable"])),
        "probes": ("C-17", len(sent["probe"])),
        "received": ("C-16", len(sent["good"]) + len(sent["corrupt"])),
        "recorded": ("C-16", len(sent["good"]) + len(sent["corrupt"])),
    }
    for name, (clause, expected) in counts.items():
        if done.get(name) != expected:
            yield clause, f"DONE reports {name} {done.get(name)}, expected {expected}"
    good = sorted(r.counter for r in records if not r.flags & CORRUPT)
    flagged = sorted(r.counter for r in records if r.flags & CORRUPT)
    if good != sent["good"]:
        yield "C-21", f"recorded as valid: {good}, expected {sent['good']}"
    if flagged != sent["corrupt"]:
        yield "C-21", f"recorded as corrupt: {flagged}, expected {sent['corrupt']}"
    if any(record.counter == PROBE for record in records):
        yield "C-17", "the node recorded the probe"
    foreign = [tuple(r) for r in records if r.node != SENDER_NODE or r.counter in sent["foreign"]]
    if foreign:
        yield "C-18", f"recorded foreign messages: {some(foreign)}"
    # Every valid payload has the same send time plus its counter.
    base_times = {r.counter: r.begin_ns - r.counter for r in records if not r.flags & CORRUPT}
    if len(set(base_times.values())) > 1:
        yield "C-27", f"begin_ns is not the payload's send time: {some(list(base_times.items()))}"


def scenarios(patterns: list[str]) -> list[Scenario]:
    if "topic" not in patterns:
        return []
    all_scenarios = [sent_bytes(encoding) for encoding in WIRE_ENCODINGS]
    all_scenarios.append(Scenario("wire-literal", ("C-22",), sent_literal))
    return all_scenarios + [received_bytes(encoding) for encoding in WIRE_ENCODINGS]
