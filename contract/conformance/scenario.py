"""Scenarios: tests of a cell, each with the clauses that it examines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .audit import Expect
from .audit_peers import audit, closing_problems
from .cell import CellUnderTest, Problem, Skipped
from .group import Group, Member, pair
from .host import HERE
from .process import NodeProcess
from .spec import base_spec, new_token

ALWAYS = (
    "C-05", "C-06", "C-07", "C-13", "C-14", "C-15", "C-16", "C-17", "C-18", "C-21", "C-24",
    "C-25", "C-26", "C-27",
)  # fmt: skip
"""Clauses that every complete run examines, in addition to those of its scenario."""


@dataclass(frozen=True)
class Scenario:
    """One test of a cell. `name` is unique in a suite; `check` returns every breach."""

    name: str
    clauses: tuple[str, ...]
    check: Callable[[Bench], list[Problem]]
    pair: str = ""


class Bench:
    """The environment of a scenario: the cell, its service's endpoints, and a folder."""

    def __init__(self, cell: CellUnderTest, folder: Path, endpoints: Sequence[str]) -> None:
        self.cell, self.folder, self.endpoints = cell, folder, endpoints

    def need(self, *capabilities: str) -> None:
        """Raise Skipped for the first capability that the cell does not declare."""
        for name in capabilities:
            if name not in self.cell.capabilities:
                raise Skipped(f"the manifest does not declare {name}")

    def need_own_host(self, peer: str) -> None:
        """Raise Skipped if nodes run on other hosts, which cannot reach `peer` in this process."""
        if self.cell.places[0] != HERE:
            raise Skipped(f"{peer} is on this host only; check the cell without a rig, too")

    def group(self, pattern: str, members: Sequence[Member]) -> Group:
        return Group(self.folder, pattern, members, self.endpoints)

    def whole_run(
        self,
        pattern: str,
        changes: dict[str, Any] | None = None,
        expect: Expect | None = None,
        during: Callable[[Group], None] | None = None,
        members: Sequence[Member] | None = None,
    ) -> list[Problem]:
        """Execute a complete run and return its breaches.

        The nodes are `members`, or by default a pair with `changes` in both specs.
        """
        members = members or pair(self.cell, self.cell, pattern, changes)
        with self.group(pattern, members) as group:
            group.run(during)
            return audit(group, expect) + closing_problems(group)

    def single(self, spec: dict[str, Any], extra: Sequence[str] = ()) -> NodeProcess:
        """Start one node with exactly this spec; the caller must kill it."""
        folder = self.folder / new_token()
        label = f"{spec.get('role')} ({self.cell.name})"
        return NodeProcess(self.cell, spec, folder, label, extra, self.cell.places[0])

    def lone_spec(self, pattern: str, role: str, **changes: Any) -> dict[str, Any]:
        """Return the spec of a single node with a new run token."""
        spec = base_spec(self.cell, pattern, role, **changes)
        spec["run"] = new_token()
        spec["peers.endpoints"] = list(self.endpoints)
        return spec


def sleep_until(t_ns: int) -> None:
    time.sleep(max(0, t_ns - time.monotonic_ns()) / 1e9)


class Stopwatch:
    """The times, in ns, at which a scenario paused and resumed a node."""

    def __init__(self) -> None:
        self.pause_ns = 0
        self.resume_ns = 0
