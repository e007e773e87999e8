"""Scenarios for members of a topology: processes with several publishers and subscribers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..audit import Expect, NodeRun, audit_counts, audit_lines, audit_records, audit_schedule
from ..audit_one_way import topic
from ..cell import Broken, Problem
from ..group import HANG_S, go_margin_ns
from ..process import Line, NodeProcess
from ..samples import read_files
from ..scenario import Bench, Scenario
from ..spec import MILLISECOND_NS, READY_TIMEOUT_MS, new_token
from ..usage import refusal

MEMBER = "member"
CAPABILITY = "members"
PART_KEYS = (
    "run", "role", "node", "index", "peers.nodes", "peers.count", "period_ns", "phase_ns",
    "payload.bytes", "payload.seed", "record.capacity",
)  # fmt: skip
"""The keys of each part (C-41), besides its settings."""
WINDOW_MS = 400


@dataclass(frozen=True)
class _Flow:
    """A flow from the member `sender` to others: bytes, period (ms) and the number of its node."""

    sender: int
    receivers: tuple[int, ...]
    payload_bytes: int
    period_ms: int
    node: int


FLOWS = (
    _Flow(0, (1, 2), 64, 10, 0x0203),
    _Flow(0, (2,), 300, 25, 0x0204),
    _Flow(1, (0,), 32, 7, 0x0205),
    _Flow(1, (1,), 128, 20, 0x0206),
)
"""A graph in which members have several flows, and one member receives its own."""


@dataclass
class _Parts:
    """The members of one run, with the specs of their parts."""

    specs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    start_ns: int = 0
    done_ns: int = 0


class _PartProcess:
    """A part of a member, in the form of a node: its spec, and its entries of the lines."""

    def __init__(self, node: NodeProcess, spec: dict[str, Any]) -> None:
        self.cell, self.spec = node.cell, spec
        self.label = f"{node.label}: {spec['role']} {spec['node']:#06x}"
        self._node = node

    def fields(self, keyword: str) -> dict[str, Any]:
        """Return the fields of a line, with those of this part's entry (C-42)."""
        whole = self._node.fields(keyword)
        entries = [e for e in whole.get("parts", []) if e.get("node") == self.spec["node"]]
        return {**whole, **(entries[0] if len(entries) == 1 else {})}

    def line(self, keyword: str) -> Line | None:
        return self._node.line(keyword)


def _part_specs(bench: Bench) -> dict[int, list[dict[str, Any]]]:
    """Return the member's number → the specs of its parts."""
    parts: dict[int, list[dict[str, Any]]] = {}
    counts = {"publisher": 0, "subscriber": 0}
    for number, flow in enumerate(FLOWS):
        receivers = {0x1000 + 16 * number + r: r for r in flow.receivers}
        changes = {
            "run": new_token(), "payload.bytes": flow.payload_bytes,
            "payload.seed": 1000 + number, "period_ns": flow.period_ms * MILLISECOND_NS,
            "duration_ns": WINDOW_MS * MILLISECOND_NS, "phase_ns": 0,
            "warmup_ns": 100 * MILLISECOND_NS,
        }  # fmt: skip
        ends = [(flow.node, flow.sender, "publisher", [*receivers])]
        ends += [(node, member, "subscriber", [flow.node]) for node, member in receivers.items()]
        for node, member, role, peers in ends:
            spec = bench.lone_spec("topic", role) | changes
            spec |= {
                "node": node, "index": counts[role], "peers.nodes": peers,
                "peers.count": len(peers), "phase_ns": number * MILLISECOND_NS,
            }  # fmt: skip
            counts[role] += 1
            parts.setdefault(member, []).append(spec)
    return parts


def member_spec(token: str, index: int, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the spec of a member with these parts (C-41)."""
    spec = {
        **parts[0], "role": MEMBER, "run": token, "index": index, "phase_ns": 0,
        "record.capacity": 0, "parts": len(parts),
        "peers.nodes": sorted({node for part in parts for node in part["peers.nodes"]}),
        "peers.count": sum(part["peers.count"] for part in parts),
    }  # fmt: skip
    for number, part in enumerate(parts):
        own = {k: v for k, v in part.items() if k in PART_KEYS or k.startswith("settings.")}
        spec |= {f"part.{number}.{key}": value for key, value in own.items()}
    return spec


def graph(bench: Bench) -> list[Problem]:
    """Check the members of a graph, and each of their parts as a node of its own."""
    bench.need(CAPABILITY)
    run = _Parts(_part_specs(bench))
    token = new_token()
    nodes = {n: bench.single(member_spec(token, n, parts)) for n, parts in run.specs.items()}
    try:
        _execute(run, nodes)
        return [*_lines(bench, run, nodes), *_parts(run, nodes)]
    finally:
        for node in nodes.values():
            node.kill()


def _execute(run: _Parts, nodes: dict[int, NodeProcess]) -> None:
    """Run the window of all members. Raise Broken if a line does not come."""

    def expect(node: NodeProcess, keyword: str, clause: str) -> None:
        if node.wait_line(keyword, READY_TIMEOUT_MS / 1000 + HANG_S) is None:
            raise Broken(clause, f"{node.label}: no {keyword} line; {node.last_output()}")

    for node in nodes.values():
        expect(node, "READY", "C-07")
    run.start_ns = time.monotonic_ns() + go_margin_ns()
    for node in nodes.values():
        node.go(run.start_ns)
    for number, node in nodes.items():
        if any(part["role"] == "publisher" for part in run.specs[number]):
            expect(node, "SENT", "C-42")
    for node in nodes.values():
        node.write("STOP\n")
    for node in nodes.values():
        expect(node, "DONE", "C-15")
        if node.wait_exit(1.0 + HANG_S) != 0:
            raise Broken("C-16", f"{node.label}: the member must exit with 0 after DONE")
    run.done_ns = time.monotonic_ns()


def _lines(bench: Bench, run: _Parts, nodes: dict[int, NodeProcess]) -> Iterator[Problem]:
    """Yield the breaches of the members' lines: their entries, and their totals."""
    for number, node in nodes.items():
        yield from audit_lines(node, "none", dict(bench.cell.settings))
        parts = run.specs[number]
        senders = [part["node"] for part in parts if part["role"] == "publisher"]
        every = [part["node"] for part in parts]
        for keyword, expected in (("READY", every), ("SENT", senders), ("DONE", every)):
            fields = node.fields(keyword)
            entry_nodes = [entry.get("node") for entry in fields.get("parts", [])]
            if entry_nodes != expected:
                text = f"{keyword} has entries for the nodes {entry_nodes}; expected {expected}"
                yield Problem("C-42", f"{node.label}: {text}")
            for key, value in fields.items():
                counts = [entry.get(key) for entry in fields.get("parts", [])]
                is_count = type(value) is int and not key.endswith("_ns")
                if is_count and all(type(c) is int for c in counts) and sum(counts) != value:
                    text = f"{keyword}: {key} is {value}, but its entries add up to {sum(counts)}"
                    yield Problem("C-42", f"{node.label}: {text}")
        ready = node.fields("READY")
        matched = [entry.get("matched") for entry in ready.get("parts", [])]
        if (ready.get("matched") is None) is not (None in matched):
            text = f"READY: matched is {ready.get('matched')}, and that of its entries {matched}; "
            text += "expected null if an entry has null, and their sum otherwise"
            yield Problem("C-42", f"{node.label}: {text}")


def _parts(run: _Parts, nodes: dict[int, NodeProcess]) -> Iterator[Problem]:
    """Yield the breaches of each part, which is checked as a node of its own."""
    runs: dict[int, NodeRun] = {}
    for number, node in nodes.items():
        for spec in run.specs[number]:
            part = _PartProcess(node, spec)
            path = node.out / f"samples-{spec['node']}.bin"
            if not path.is_file():
                yield Problem("C-42", f"{part.label}: the member wrote no {path.name}")
                continue
            samples = read_files([path], spec, part.label)
            yield from samples.problems
            runs[spec["node"]] = NodeRun(part, samples, False)  # type: ignore[arg-type]
        others = {path.name for path in node.out.glob("samples*.bin")}
        others -= {f"samples-{spec['node']}.bin" for spec in run.specs[number]}
        if others:
            yield Problem("C-42", f"{node.label}: found {sorted(others)}, which no part has")
    expect = Expect()
    for part_run in runs.values():
        yield from audit_counts(part_run, expect)
        yield from audit_records(part_run, run, expect)  # type: ignore[arg-type]
        if part_run.sends:
            yield from audit_schedule(part_run, run, expect)  # type: ignore[arg-type]
            receivers = [runs[n] for n in part_run.spec["peers.nodes"] if n in runs]
            yield from topic([part_run], receivers, expect)
        elif not part_run.records:
            yield part_run.problem("C-41", "the part received none of its flow's messages")


def bad_parts(bench: Bench) -> list[Problem]:
    """Check specs of a member with a bad part, and a spec of another role with parts."""
    bench.need(CAPABILITY)
    parts = _part_specs(bench)[0]
    good = member_spec(new_token(), 0, parts)

    def without(key: str) -> dict[str, Any]:
        return {name: value for name, value in good.items() if name != key}

    beyond = f"part.{len(parts)}.node"
    cases = [
        ("parts missing", "parts", without("parts")),
        ("parts of another type", "parts", good | {"parts": "2"}),
        ("no part", "parts", good | {"parts": 0}),
        ("more parts than allowed", "parts", good | {"parts": 1_000_000_000}),
        ("a key of a part missing", "part.1.node", without("part.1.node")),
        ("a key of another type", "part.0.peers.nodes", good | {"part.0.peers.nodes": 7}),
        ("a part beyond their number", beyond, good | {beyond: 7}),
        ("a key that parts do not have", "part.0.linger_ms", good | {"part.0.linger_ms": 7}),
        ("parts of a publisher", "parts", bench.lone_spec("topic", "publisher") | {"parts": 1}),
    ]
    problems: list[Problem] = []
    for case, key, spec in cases:
        breaches, error = refusal(bench.single(spec), 2, "C-41", case)
        problems += breaches
        if not breaches and error.get("key") != key:
            text = f"{case}: the ERROR line names {error.get('key')!r}; expected {key!r}"
            problems.append(Problem("C-41", text))
    longest = bench.cell.bytes_max(good["payload.encoding"])
    if longest is not None:
        spec = good | {"part.1.payload.bytes": longest + 1}
        problems += refusal(bench.single(spec), 3, "C-03", "a payload of a part too long")[0]
    return problems


def scenarios(patterns: list[str]) -> list[Scenario]:
    """Return the scenarios of members, which cells with topics may have."""
    if "topic" not in patterns:
        return []
    clauses = (
        "C-41", "C-42", "C-05", "C-07", "C-10", "C-13", "C-14", "C-15", "C-16", "C-17", "C-18",
        "C-21", "C-24", "C-25", "C-26", "C-27", "C-29",
    )  # fmt: skip
    return [
        Scenario("members", clauses, graph),
        Scenario("bad-parts", ("C-41", "C-03"), bad_parts),
    ]
