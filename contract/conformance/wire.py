"""The suite as the other side of the wire: it sends what no sound node would send.

Only the loopback middleware is spoken here, whose frame is one byte of kind, eight bytes of the
call's number, then the payload. The kits do this work for every middleware alike.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .audit import some
from .cell import Broken, Problem, Skipped
from .group import GO_MARGIN_NS, HANG_S
from .payload import payload
from .payloads import GOLDEN_SIZES
from .process import NodeProcess
from .samples import CORRUPT, PROBE, TIMEOUT, Record, read_samples
from .scenario import Bench, Scenario
from .spec import MILLISECOND_NS, READY_TIMEOUT_MS, SEED, SENDER_NODE, open_loop

_FRAME = struct.Struct("<BQ")
MESSAGE, REQUEST, REPLY = range(3)
SIZE = 200


class Wire:
    """A bound socket of the loopback middleware."""

    def __init__(self, token: str) -> None:
        self.name = f"wattwire-{token}-suite-{os.getpid()}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 212_992)
        self.socket.bind("\0" + self.name)
        self.socket.settimeout(HANG_S)

    def send(self, kind: int, number: int, data: bytes, endpoint: str) -> None:
        address = "\0" + endpoint.removeprefix("@")
        self.socket.sendto(_FRAME.pack(kind, number) + data, address)

    def receive(self, timeout_s: float) -> tuple[int, int, bytes, str] | None:
        if not select.select([self.socket], [], [], timeout_s)[0]:
            return None
        data, address = self.socket.recvfrom(300_000)
        name = address.decode() if isinstance(address, bytes) else str(address)
        return *_FRAME.unpack_from(data), data[_FRAME.size :], "@" + name.lstrip("\0")


@contextlib.contextmanager
def lone_node(bench: Bench, spec: dict[str, Any]) -> Iterator[tuple[NodeProcess, Wire]]:
    """One node whose peer is the suite; nothing is left at the end."""
    wire = Wire(spec["run"])
    if spec["role"] in ("publisher", "client"):
        spec["peers.endpoints"] = [f"@{wire.name}"]
    node = bench.single(spec)
    try:
        yield node, wire
    finally:
        node.kill()
        wire.socket.close()


def await_line(node: NodeProcess, keyword: str, clause: str) -> dict[str, Any]:
    line = node.wait_line(keyword, READY_TIMEOUT_MS / 1000 + HANG_S)
    if line is None or line.fields is None:
        raise Broken(clause, f"{node.label}: no {keyword} line; {node.why()}")
    return line.fields


def go(node: NodeProcess) -> int:
    await_line(node, "READY", "C-07")
    start_ns = time.monotonic_ns() + GO_MARGIN_NS
    node.write(f"GO {start_ns}\n")
    return start_ns


def stop(node: NodeProcess) -> tuple[dict[str, Any], list[Record], list[Problem]]:
    """STOP, then (DONE's fields, the records, what is wrong with the files)."""
    node.write("STOP\n")
    done = await_line(node, "DONE", "C-15")
    node.wait_exit(HANG_S)
    samples = read_samples(node.out, node.spec, node.label)
    return done, samples.records, samples.problems


def only_loopback(bench: Bench) -> None:
    if bench.cell.middleware != "loopback":
        raise Skipped("the suite is the other side of the wire for loopback only")


def _unit(encoding: str) -> int:
    return 2 if encoding == "text" else 1


def sent_bytes(encoding: str) -> Scenario:
    """What a publisher puts on the wire, byte for byte."""

    def check(bench: Bench) -> list[Problem]:
        only_loopback(bench)
        bench.need(f"encoding.{encoding}")
        problems: list[Problem] = []
        clause = "C-20" if encoding == "text" else "C-19"
        for size in (*GOLDEN_SIZES, 23, 24, 31, 33, 47, 48, 50):
            changes = {"payload__bytes": size, "payload__encoding": encoding, **open_loop(4, 5)}
            spec = bench.lone_spec("topic", "publisher", **changes)
            with lone_node(bench, spec) as (node, wire):
                go(node)
                caught = [wire.receive(HANG_S) for _ in range(4)]
                await_line(node, "SENT", "C-14")
                _, records, _ = stop(node)
            for record, frame in zip(sorted(records), caught, strict=False):
                found = frame[2] if frame is not None else b""
                seq = SENDER_NODE << 48 | record.counter
                due = payload(seq, record.begin_ns, size, SEED, encoding == "text")
                if found != due:
                    at = next(
                        (i for i in range(len(due)) if found[i : i + 1] != due[i : i + 1]), size
                    )
                    text = f"{size} {encoding}: message {record.counter} has {len(found)} bytes, "
                    text += (
                        f"first wrong at {at}: {found[at : at + 8]!r}, must be {due[at : at + 8]!r}"
                    )
                    problems.append(Problem(clause, f"{node.label}: {text}"))
                    break
            if len(records) != 4:
                problems.append(Problem("C-10", f"{node.label}: {len(records)} records of 4"))
        return problems

    clause = "C-20" if encoding == "text" else "C-19"
    return Scenario(f"wire-sent[{encoding}]", (clause, "C-17"), check)


def _flip(data: bytes, at: int) -> bytes:
    """Another character of the alphabet, or another byte, at `at`."""
    other = b"B" if data[at : at + 1] == b"A" else b"A"
    return data[:at] + other + data[at + 1 :]


def _plants(encoding: str, now_ns: int) -> list[tuple[str, int, bytes]]:
    """(what is expected, counter, payload): good, corrupt, foreign, probe."""
    text, unit = encoding == "text", _unit(encoding)

    def good(counter: int, node: int = SENDER_NODE, seed: int = SEED) -> bytes:
        return payload(node << 48 | counter, now_ns + counter, SIZE, seed, text)

    return [
        ("probe", PROBE, good(PROBE)),
        ("good", 0, good(0)),
        ("good", 1, good(1)),
        ("good", 1, good(1)),
        ("foreign", 2, good(2, node=SENDER_NODE + 1)),
        ("foreign", 3, good(3, seed=SEED + 1)),
        ("corrupt", 4, _flip(good(4), SIZE - 8 * unit - 1)),
        ("corrupt", 5, _flip(good(5), 16 * unit + 9)),
        ("corrupt", 6, _flip(good(6), SIZE - 1)),
        ("corrupt", 7, good(7)[:-1]),
        ("corrupt", 8, good(8) + b"A"),
        ("good", 10, good(10)),
        ("good", 9, good(9)),
    ]


def received_bytes(encoding: str) -> Scenario:
    """What a subscriber makes of good, corrupt, foreign, doubled and disordered messages."""

    def check(bench: Bench) -> list[Problem]:
        only_loopback(bench)
        bench.need(f"encoding.{encoding}")
        changes = {"payload__bytes": SIZE, "payload__encoding": encoding}
        spec = bench.lone_spec("topic", "subscriber", **changes)
        with lone_node(bench, spec) as (node, wire):
            endpoint = await_line(node, "LISTENING", "C-06")["endpoints"][0]
            start_ns = go(node)
            time.sleep(max(0, start_ns + 20 * MILLISECOND_NS - time.monotonic_ns()) / 1e9)
            plants = _plants(encoding, time.monotonic_ns())
            for _, counter, data in plants:
                wire.send(MESSAGE, counter & 0xFFFF, data, endpoint)
            time.sleep(0.1)
            done, records, problems = stop(node)
        texts = _plant_breaches(plants, done, records)
        return problems + [Problem(c, f"{node.label}: {encoding}: {t}") for c, t in texts]

    return Scenario(f"wire-received[{encoding}]", ("C-21", "C-17", "C-18", "C-16"), check)


def _plant_breaches(
    plants: list[tuple[str, int, bytes]], done: dict[str, Any], records: list[Record]
) -> Iterator[tuple[str, str]]:
    due = {kind: sorted(c for k, c, _ in plants if k == kind) for kind in
           ("good", "corrupt", "foreign", "probe")}  # fmt: skip
    counts = {
        "foreign": ("C-18", len(due["foreign"])),
        "corrupt": ("C-21", len(due["corrupt"])),
        "probes": ("C-17", len(due["probe"])),
        "received": ("C-16", len(due["good"]) + len(due["corrupt"])),
        "recorded": ("C-16", len(due["good"]) + len(due["corrupt"])),
    }
    for name, (clause, expected) in counts.items():
        if done.get(name) != expected:
            yield clause, f"DONE says {name} {done.get(name)}; planted were {expected}"
    sound = sorted(r.counter for r in records if not r.flags & CORRUPT)
    flagged = sorted(r.counter for r in records if r.flags & CORRUPT)
    if sound != due["good"]:
        yield "C-21", f"recorded as sound {sound}; must be {due['good']}"
    if flagged != due["corrupt"]:
        yield "C-21", f"recorded as corrupt {flagged}; must be {due['corrupt']}"
    if any(record.counter == PROBE for record in records):
        yield "C-17", "the probe was recorded"
    strangers = [tuple(r) for r in records if r.node != SENDER_NODE or r.counter in due["foreign"]]
    if strangers:
        yield "C-18", f"recorded foreign messages: {some(strangers)}"
    # Every good payload was stamped with the planting time plus its counter.
    began = {r.counter: r.begin_ns - r.counter for r in records if not r.flags & CORRUPT}
    if len(set(began.values())) > 1:
        yield "C-27", f"begin_ns is not the payload's send time: {some(list(began.items()))}"


def served_bytes(kind: str, encoding: str) -> Scenario:
    """What a server answers, byte for byte, and whom it does not answer."""

    def check(bench: Bench) -> list[Problem]:
        only_loopback(bench)
        bench.need(f"reply.{kind}", f"encoding.{encoding}")
        text = encoding == "text"
        literal = "granted" if kind == "literal" else ""
        changes = {"payload__bytes": SIZE, "payload__encoding": encoding, "reply": kind}
        spec = bench.lone_spec("service", "server", **changes, reply__literal=literal)
        problems = []
        with lone_node(bench, spec) as (node, wire):
            endpoint = await_line(node, "LISTENING", "C-06")["endpoints"][0]
            go(node)
            time.sleep(GO_MARGIN_NS / 1e9 + 0.02)
            for counter in (PROBE, 0, 1):
                request = payload(SENDER_NODE << 48 | counter, 1, SIZE, SEED, text)
                due = {"echo": request, "ack": request[: 8 * _unit(encoding)]}
                wire.send(REQUEST, counter & 0xFFFF, request, endpoint)
                answer = wire.receive(HANG_S)
                found = answer[2] if answer is not None else None
                if found != due.get(kind, literal.encode()):
                    what = f"{kind}: {encoding} request {counter:#x} was answered with"
                    problems.append(Problem("C-23", f"{node.label}: {what} {found!r:.80}"))
            stranger = payload((SENDER_NODE + 1) << 48, 1, SIZE, SEED, text)
            wire.send(REQUEST, 9, stranger, endpoint)
            time.sleep(0.1)
            done, records, file_problems = stop(node)
        counts = {"received": 2, "recorded": 2, "foreign": 1, "probes": 1}
        found_counts = {name: done.get(name) for name in counts}
        if found_counts != counts or len(records) != 2:
            text_ = f"{node.label}: 2 requests, a probe and a stranger came to {found_counts}"
            clause = "C-17" if done.get("probes") != 1 else "C-18"
            problems.append(Problem(clause, text_))
        return problems + file_problems

    return Scenario(f"wire-served[{kind} {encoding}]", ("C-23", "C-17", "C-18"), check)


def checked_replies(kind: str, encoding: str) -> Scenario:
    """What a client makes of wrong replies, of none, and of one that comes too late."""

    def check(bench: Bench) -> list[Problem]:
        only_loopback(bench)
        bench.need(f"reply.{kind}", f"encoding.{encoding}", "loop.open")
        literal = "granted" if kind == "literal" else ""
        # Blocking calls and overlapping ones go different ways through a kit.
        text = encoding == "text"
        changes = {
            "payload__bytes": SIZE, "payload__encoding": encoding, "reply": kind,
            "reply__literal": literal, "timeout_ns": 150 * MILLISECOND_NS,
            "outstanding_max": 3 if text else 1, **open_loop(9, 40),
        }  # fmt: skip
        spec = bench.lone_spec("service", "client", **changes)
        answer = _answers(kind, encoding, literal)
        sent: dict[int, bytes] = {}
        with lone_node(bench, spec) as (node, wire):
            ended = threading.Event()
            server = threading.Thread(target=_serve, args=(wire, answer, ended, sent))
            server.start()
            try:
                go(node)
                await_line(node, "SENT", "C-14")
                done, records, problems = stop(node)
            finally:
                ended.set()
                server.join()
        breaches = [*_reply_breaches(kind, done, sorted(records))]
        for record in records:
            due = payload(record.seq, record.begin_ns, SIZE, SEED, text)
            if sent.get(record.counter, due) != due:
                what = f"request {record.counter} is not the payload of its begin_ns"
                breaches.append(("C-27", what))
        for clause, what in breaches:
            problems.append(Problem(clause, f"{node.label}: {kind} {encoding}: {what}"))
        return problems

    clauses = ("C-23", "C-21", "C-12", "C-16", "C-27")
    return Scenario(f"wire-replies[{kind} {encoding}]", clauses, check)


def _answers(
    kind: str, encoding: str, literal: str
) -> Callable[[int, bytes], tuple[bytes | None, float]]:
    """(reply, seconds to wait before it) for call number and request."""
    unit = _unit(encoding)

    def answer(number: int, request: bytes) -> tuple[bytes | None, float]:
        good = {"echo": request, "ack": request[: 8 * unit]}.get(kind, literal.encode())
        if number == 2:
            return _flip(good, 0 if kind != "echo" else 16 * unit + 9), 0
        if number == 3:
            return good[:-1], 0
        if number == 5:
            return None, 0
        if number == 7:
            return good, 0.25
        return good, 0

    return answer


def _serve(
    wire: Wire,
    answer: Callable[[int, bytes], tuple[bytes | None, float]],
    ended: threading.Event,
    sent: dict[int, bytes],
) -> None:
    while not ended.is_set():
        frame = wire.receive(0.1)
        if frame is None or frame[0] != REQUEST:
            continue
        sent[frame[1]] = frame[2]
        reply, wait_s = answer(frame[1], frame[2])
        time.sleep(wait_s)
        if reply is not None:
            with contextlib.suppress(OSError):
                wire.send(REPLY, frame[1], reply, frame[3])


def _reply_breaches(
    kind: str, done: dict[str, Any], records: list[Record]
) -> Iterator[tuple[str, str]]:
    by_flag = {flag: [r.counter for r in records if r.flags & flag] for flag in (CORRUPT, TIMEOUT)}
    if by_flag[CORRUPT] != [2, 3]:
        clause = "C-21" if kind == "echo" else "C-23"
        yield clause, f"flagged corrupt are calls {by_flag[CORRUPT]}; replies 2 and 3 were wrong"
    # The server that answers late holds the next call up, too; that one may go either way.
    if not {5, 7} <= set(by_flag[TIMEOUT]) <= {5, 7, 8}:
        text = f"flagged timeout are calls {by_flag[TIMEOUT]}; 5 had no reply and 7 a late one"
        yield "C-12", text
    expected = len(records) - len(by_flag[TIMEOUT])
    if done.get("received") != expected:
        text = f"DONE says received {done.get('received')}; in time came {expected}"
        yield "C-16", text
    if done.get("corrupt") != 2:
        yield "C-21", f"DONE says corrupt {done.get('corrupt')}; 2 replies were wrong"


def scenarios(patterns: list[str]) -> list[Scenario]:
    found = []
    encodings = ("bytes", "text")
    if "topic" in patterns:
        found += [sent_bytes(encoding) for encoding in encodings]
        found += [received_bytes(encoding) for encoding in encodings]
    if "service" in patterns:
        kinds = [("echo", "bytes"), ("echo", "text"), ("ack", "text"), ("literal", "bytes")]
        found += [served_bytes(kind, encoding) for kind, encoding in kinds]
        found += [checked_replies(kind, encoding) for kind, encoding in kinds]
    return found
