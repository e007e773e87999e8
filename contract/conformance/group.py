"""Control the nodes of one run: the controller's side of the contract's dialogue."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from .cell import PATTERN_ROLES, SENDING_ROLES, Broken, CellUnderTest
from .process import NodeProcess
from .samples import Samples, read_samples
from .spec import READY_TIMEOUT_MS, RECEIVER_NODE, SENDER_NODE, base_spec, new_token, overlap

HANG_S = 20.0
"""Margin on the contract's time limits: a node that exceeds a limit by this time broke it, whatever
the load of the machine."""
AT_ONCE_S = 6.0
"""Time limit for `at once`, whatever the load of the machine. A node that breaks the clause is
blocked for a minute."""
GO_MARGIN_NS = 200_000_000


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
        self.token = new_token()
        self._folder = folder / self.token
        self._endpoints = list(endpoints)
        self.members: list[tuple[Member, dict[str, Any]]] = []
        self.nodes: list[NodeProcess] = []
        self.start_ns = 0
        self.stop_ns: dict[NodeProcess, int] = {}
        self.done_ns = 0
        self._plan(members)

    def _plan(self, members: Sequence[Member]) -> None:
        """Fill `self.members` with the members and their specs, peers included."""
        counts: dict[str, int] = {}
        for member in members:
            index = counts.get(member.role, 0)
            counts[member.role] = index + 1
            base = SENDER_NODE if member.role in SENDING_ROLES else RECEIVER_NODE
            spec = base_spec(member.cell, self.pattern, member.role)
            spec.update(run=self.token, index=index, node=base + index)
            if member.node is not None:
                spec["node"] = member.node
            self.members.append((member, spec))
        for member, spec in self.members:
            peers = [
                spec_["node"]
                for member_, spec_ in self.members
                if not member_.stranger and self._sends(member_) != self._sends(member)
            ]
            spec.update({"peers.nodes": peers, "peers.count": len(peers)})
            spec.update(member.changes)
            if "outstanding_max" not in member.changes:
                spec["outstanding_max"] = overlap(spec)

    @staticmethod
    def _sends(member: Member) -> bool:
        return member.role in SENDING_ROLES

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
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- starting --------------------------------------------------------------------------

    def launch(self, member: Member, spec: dict[str, Any]) -> NodeProcess:
        label = f"{spec['role']} {spec['node']} ({member.cell.name})"
        folder = self._folder / f"{spec['role']}-{spec['node']}-{len(self.nodes)}"
        node = NodeProcess(member.cell, spec, folder, label)
        self.nodes.append(node)
        return node

    def start(self) -> None:
        """Start the listeners, then the connecting nodes, and wait until all are READY."""
        listening = self.members[0][0].cell.listening_role(self.pattern)
        listening_members = [item for item in self.members if item[0].role == listening]
        connecting_members = [item for item in self.members if item[0].role != listening]
        endpoints = list(self._endpoints)
        listeners = []
        for member, spec in listening_members:
            listeners.append(self.launch(member, {**spec, "peers.endpoints": endpoints}))
        listened: list[str] = []
        for node in sorted(listeners, key=lambda node: node.spec["node"]):
            line = node.wait_line("LISTENING", READY_TIMEOUT_MS / 1000 + HANG_S)
            if line is None or line.fields is None:
                raise Broken("C-06", f"{node.label}: no LISTENING line; {node.last_output()}")
            listened += line.fields.get("endpoints", [])
        for member, spec in connecting_members:
            self.launch(member, {**spec, "peers.endpoints": endpoints + listened})
        for node in self.nodes:
            self.expect(node, "READY", "C-07", READY_TIMEOUT_MS / 1000 + HANG_S)

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
        return [node for node in self.nodes if node.spec["role"] not in SENDING_ROLES]

    def node(self, role: str, index: int = 0) -> NodeProcess:
        return [node for node in self.nodes if node.spec["role"] == role][index]

    def go(self, ahead_ns: int = GO_MARGIN_NS) -> None:
        self.start_ns = time.monotonic_ns() + ahead_ns
        for node in self.nodes:
            node.write(f"GO {self.start_ns}\n")

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
        """Stop the senders and wait for their end, then stop the receivers."""
        self.stop(self.senders)
        self.wait_done(self.senders)
        self.stop(self.receivers)
        self.wait_done(self.receivers)

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
        return read_samples(node.out, node.spec, node.label)


def pair(
    sender: CellUnderTest,
    receiver: CellUnderTest,
    pattern: str,
    changes: dict[str, Any] | None = None,
) -> list[Member]:
    """Return one sender and one receiver, both with `changes` in their specs."""
    sending, receiving = PATTERN_ROLES[pattern]
    return [
        Member(sender, sending, dict(changes or {})),
        Member(receiver, receiving, dict(changes or {})),
    ]


def pause(node: NodeProcess) -> None:
    node.signal(signal.SIGSTOP)


def resume(node: NodeProcess) -> None:
    node.signal(signal.SIGCONT)
