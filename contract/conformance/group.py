"""Control the nodes of one run: the controller's side of the contract's dialogue."""

from __future__ import annotations

import itertools
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from .cell import Broken, CellUnderTest
from .host import Place, waiting_per_core
from .leftovers.shared_memory import SharedMemory
from .process import NodeProcess
from .roles import MESSAGE, PATTERNS, SENDING_ROLES, chain_roles
from .samples import Record, Samples, converted, read_samples
from .spec import READY_TIMEOUT_MS, base_spec, first_node, new_token, overlap

HANG_S = 20.0
"""Margin on the contract's time limits: a node that exceeds a limit by this time broke it, whatever
the load of the machine."""
AT_ONCE_S = 6.0
"""Time limit for `at once`, whatever the load of the machine. A node that breaks the clause is
blocked for a minute."""
GO_MARGIN_NS = 200_000_000
RELAYS = 2
"""The usual number of relays in a chain; the two relays of two languages differ."""


def go_margin_ns() -> int:
    """Return how far ahead a start is that all nodes read in time (ns), by the machine's load.

    A node may have to wait while each other process of its core uses its slice.
    """
    return round(GO_MARGIN_NS * max(1.0, waiting_per_core()))


@dataclass(frozen=True)
class Member:
    """One node of a planned run. A stranger has peers, but is not a peer of any node."""

    cell: CellUnderTest
    role: str
    changes: dict[str, Any] = field(default_factory=dict)
    node: int | None = None
    stranger: bool = False


class Group:
    """The nodes of one run; a context manager that kills all remaining processes at its end."""

    def __init__(
        self, folder: Path, pattern: str, members: Sequence[Member], endpoints: Sequence[str]
    ) -> None:
        self.pattern = pattern
        self._roles = PATTERNS[pattern]
        self.token = new_token()
        self._folder = folder / self.token
        self._endpoints = list(endpoints)
        self.members: list[tuple[Member, dict[str, Any]]] = []
        self.nodes: list[NodeProcess] = []
        self._places: dict[int, Place] = {}
        self.start_ns = 0
        self.stop_ns: dict[NodeProcess, int] = {}
        self.done_ns = 0
        self._shared_memory = SharedMemory()
        self._plan(members)

    def _plan(self, members: Sequence[Member]) -> None:
        """Fill `self.members` with the members and their specs, peers included."""
        counts: dict[str, int] = {}
        relays = sum(member.role == self._roles.relay for member in members)
        for number, member in enumerate(members):
            index = counts.get(member.role, 0)
            counts[member.role] = index + 1
            spec = base_spec(member.cell, self.pattern, member.role)
            spec.update(run=self.token, index=index, node=first_node(member.role) + index)
            if member.node is not None:
                spec["node"] = member.node
            if self._roles.is_chain:
                spec["hop"] = self._roles.hop(member.role, index, relays)
            self.members.append((member, spec))
            self._places[spec["node"]] = member.cell.places[number % len(member.cell.places)]
        for member, spec in self.members:
            others = [(m, other) for m, other in self.members if self._roles.is_peer(spec, other)]
            peers = [other["node"] for member_, other in others if not member_.stranger]
            spec["peers.nodes"] = peers
            if not self._roles.is_chain:
                spec["peers.count"] = len(peers)
            # Strangers are on hosts of the other side, too: discovery must reach them.
            spec.update(self._network(spec, [other["node"] for _, other in others]))
            spec.update(member.changes)
            if "outstanding_max" not in member.changes:
                spec["outstanding_max"] = overlap(spec)

    def _network(self, spec: dict[str, Any], others: Sequence[int]) -> dict[str, Any]:
        """Return the keys of C-38 for a node with these nodes on the other side."""
        place = self._places[spec["node"]]
        near = set(others)
        if self._roles.is_chain:
            hops = (spec["hop"] - 1, spec["hop"] + 1)
            near = {other["node"] for _, other in self.members if other["hop"] in hops}
        addresses = [self._places[node].address for node in sorted(near)]
        return {
            "host.address": place.address,
            "host.interface": place.interface,
            "peers.addresses": list(dict.fromkeys(addresses)) or [place.address],
        }

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in self.nodes:
            node.kill()
        self._shared_memory.remove_unused()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- starting --------------------------------------------------------------------------

    def launch(self, member: Member, spec: dict[str, Any]) -> NodeProcess:
        hop = f" at hop {spec['hop']}" if self._roles.is_chain else ""
        label = f"{spec['role']} {spec['node']}{hop} ({member.cell.name})"
        folder = self._folder / f"{spec['role']}-{spec['node']}-{len(self.nodes)}"
        place = self._places[spec["node"]]
        node = NodeProcess(
            member.cell, spec, folder, label, place=place, shared_memory=self._shared_memory
        )
        self.nodes.append(node)
        return node

    def start(self) -> None:
        """Start the listeners before the nodes that connect; wait until all nodes are READY."""
        listening = self.members[0][0].cell.listening_role(self.pattern)
        stages = [self._roles.start_stage(spec, listening) for _, spec in self.members]
        listened: list[str] = []
        for stage in sorted(set(stages)):
            nodes = [
                self.launch(member, {**spec, "peers.endpoints": [*self._endpoints, *listened]})
                for (member, spec), own_stage in zip(self.members, stages, strict=True)
                if own_stage == stage
            ]
            listened = self._listened(nodes, listening)
        for node in self.nodes:
            self.expect(node, "READY", "C-07", READY_TIMEOUT_MS / 1000 + HANG_S)
            node.note_shared_memory()

    def _listened(self, nodes: Sequence[NodeProcess], listening_role: str) -> list[str]:
        """Wait for the LISTENING lines of the listeners in `nodes`; return their endpoints."""
        endpoints: list[str] = []
        for node in sorted(nodes, key=lambda node: node.spec["node"]):
            if not self._roles.listens(node.spec["role"], listening_role):
                continue
            line = node.wait_line("LISTENING", READY_TIMEOUT_MS / 1000 + HANG_S)
            if line is None or line.fields is None:
                raise Broken("C-06", f"{node.label}: no LISTENING line; {node.last_output()}")
            endpoints += line.fields.get("endpoints", [])
        return endpoints

    def expect(self, node: NodeProcess, keyword: str, clause: str, timeout_s: float) -> None:
        """Wait for a line. Raise Broken with `clause` if it does not arrive in time."""
        if node.wait_line(keyword, timeout_s) is None:
            code = node.wait_exit(1.0)
            state = "is still running" if code is None else f"ended with {code}"
            text = f"{node.label}: no {keyword} line; the node {state}; {node.last_output()}"
            raise Broken(clause, text)

    # --- the window ------------------------------------------------------------------------

    @property
    def senders(self) -> list[NodeProcess]:
        return [node for node in self.nodes if node.spec["role"] in SENDING_ROLES]

    @property
    def receivers(self) -> list[NodeProcess]:
        """The nodes that receive, in the order of a chain."""
        nodes = [node for node in self.nodes if node.spec["role"] not in SENDING_ROLES]
        return sorted(nodes, key=lambda node: node.spec.get("hop", 0))

    def node(self, role: str, index: int = 0) -> NodeProcess:
        return [node for node in self.nodes if node.spec["role"] == role][index]

    def go(self, ahead_ns: int | None = None) -> None:
        """Send GO to all nodes, with a start `ahead_ns` from now or late enough for the load."""
        self.start_ns = time.monotonic_ns() + (go_margin_ns() if ahead_ns is None else ahead_ns)
        for node in self.nodes:
            node.go(self.start_ns)

    def window_s(self, node: NodeProcess) -> float:
        """Return the longest window of a sender by its spec, in seconds (C-10 to C-12)."""
        spec = node.spec
        if spec["loop"] == "closed":
            calls = spec["count"] + spec["count_beyond"]
            return float(calls * spec["timeout_ns"] / 1e9)
        return float((spec["duration_ns"] + spec["overrun_ns"] + spec["timeout_ns"]) / 1e9)

    def wait_sent(self, nodes: Sequence[NodeProcess] | None = None) -> None:
        for node in self.senders if nodes is None else nodes:
            self.expect(node, "SENT", "C-14", self.window_s(node) + HANG_S)

    def stop(self, nodes: Sequence[NodeProcess]) -> None:
        for node in nodes:
            node.note_shared_memory()  # a node may crash while it stops
            self.stop_ns[node] = time.monotonic_ns()
            node.write("STOP\n")

    def wait_done(self, nodes: Sequence[NodeProcess]) -> None:
        for node in nodes:
            bound_s = node.spec["linger_ms"] / 1000 + HANG_S
            self.expect(node, "DONE", "C-15", bound_s)
            code = node.wait_exit(1.0 + HANG_S)
            if code != 0:
                state = "is still running" if code is None else f"ended with {code}"
                text = f"{node.label}: the node must exit with 0 after DONE but {state}"
                raise Broken("C-16", text)
        self.done_ns = time.monotonic_ns()

    def finish(self) -> None:
        """Stop the senders and wait for their end, then stop the receivers.

        Stop the nodes of a chain one after the other.
        """
        stages = {node: self._roles.stop_stage(node.spec) for node in self.nodes}
        for stage in sorted(set(stages.values())):
            nodes = [node for node in self.nodes if stages[node] == stage]
            self.stop(nodes)
            self.wait_done(nodes)

    def run(self, during: Callable[[Group], None] | None = None) -> Group:
        """Execute a complete run; call `during` immediately after GO."""
        self.start()
        self.go()
        if during is not None:
            during(self)
        self.wait_sent()
        self.finish()
        return self

    def samples(self, node: NodeProcess) -> Samples:
        """Return the records of a node, with times on the clock of this process."""
        samples = read_samples(node.out, node.spec, node.label)
        if len({place.clock_ahead_ns for place in self._places.values()} | {0}) == 1:
            return samples
        own, sends = node.place, node.spec["role"] in SENDING_ROLES
        records = [
            converted(record, own, self._sender(record, node, sends)) for record in samples.records
        ]
        return replace(samples, records=records)

    def _sender(self, record: Record, node: NodeProcess, sends: bool) -> Place:
        """Return the host that sent what a record describes."""
        if sends == (record.kind == MESSAGE):  # the node's own message or feedback
            return node.place
        if record.kind == MESSAGE:
            return self._places.get(record.node, node.place)
        return self._places.get(node.spec["peers.nodes"][0], node.place)


def pair(
    sender: CellUnderTest,
    receiver: CellUnderTest,
    pattern: str,
    changes: dict[str, Any] | None = None,
) -> list[Member]:
    """Return one sender and one receiver, both with `changes` in their specs.

    In a chain, RELAYS relays are between them, and the two cells alternate.
    """
    roles = chain_roles(PATTERNS[pattern], RELAYS)
    return [
        Member(cell, role, dict(changes or {}))
        for cell, role in zip(itertools.cycle((sender, receiver)), roles, strict=False)
    ]


def pause(node: NodeProcess) -> None:
    node.signal(signal.SIGSTOP)


def resume(node: NodeProcess) -> None:
    node.signal(signal.SIGCONT)
