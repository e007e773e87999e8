"""Clients of cells beside bare clients of the same library, against the cell's own server.

A bare client is a cell called `CELL-bare` in the bench's own root: the library's documented loop,
without a kit, run as `ARGV… HOST PORT CALLS`. It prints calls per second.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from typing import Any
from urllib.parse import urlsplit

from bench.nodes import Bench
from bench.pairs import Comparison, abba
from contract.conformance.cell import Broken, CellUnderTest
from contract.conformance.group import Group, Member
from contract.conformance.spec import RECEIVER_NODE, SENDER_NODE

PAIRS = 10
PROMISE = 0.95
SUFFIX = "-bare"
TEXT = "Hello World"
SIDE_S = 1.0
"""How long the calls of one side should take, within what CALLS allows; what compiles as it runs
needs longer, for its first thousand calls run another program than the rest."""
CALLS = (300, 10_000)
TRIAL_CALLS = 300
HANG_S = 300.0


def comparisons(
    made: Bench, pairs: int, patterns: Sequence[str], side_s: float = SIDE_S
) -> Iterator[Comparison]:
    """One for each cell that has a bare client and can be built; says why others are absent."""
    for name in chosen(made.catalog.cells, patterns):
        if name + SUFFIX not in made.catalog.cells:
            print(f"  {name}: absent: it has no bare client {name}{SUFFIX}", flush=True)
            continue
        cell, bare = made.cell(name), made.cell(name + SUFFIX)
        if cell is None or bare is None:
            continue
        try:
            yield _compared(made, cell, bare, pairs, side_s)
        except (Broken, RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"  {name}: absent: its runs broke off: {error}", flush=True)


def chosen(cells: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """The cells of all middleware with a bare client, of them those that a pattern names."""
    beside = {name.partition("/")[0] for name in cells if name.endswith(SUFFIX)}
    return [
        name
        for name in cells
        if name.partition("/")[0] in beside and not name.endswith(SUFFIX)
        if any(fnmatch(name, pattern) for pattern in patterns)
    ]


def _compared(
    made: Bench, cell: CellUnderTest, bare: CellUnderTest, pairs: int, side_s: float
) -> Comparison:
    trial = _bare_calls_per_s(made, cell, bare, TRIAL_CALLS)
    count = min(max(round(trial * side_s, -2), CALLS[0]), CALLS[1])
    found = abba(
        lambda: _calls_per_s(made, cell, int(count)),
        lambda: _bare_calls_per_s(made, cell, bare, int(count)),
        pairs,
    )
    name = f"{cell.name}, {count:.0f} calls"
    comparison = Comparison(name, "calls/s", *found, PROMISE, at_least=True)
    limits = f"{comparison.limit(-1):.3f} … {comparison.limit(1):.3f}"
    print(f"  {name}: {comparison.ratio:.3f} of its bare client ({limits})", flush=True)
    return comparison


def _changes(count: int) -> dict[str, Any]:
    """Spec keys of both nodes: `count` calls of TEXT one after the other, answered by TEXT."""
    return {
        "loop": "closed", "count": count, "period_ns": 0, "duration_ns": 0, "outstanding_max": 1,
        "payload.encoding": "text", "payload.bytes": len(TEXT), "payload.literal": TEXT,
        "reply": "literal", "reply.literal": TEXT, "record.capacity": count + 10,
        "peers.nodes": [RECEIVER_NODE],
    }  # fmt: skip


@contextlib.contextmanager
def _started(made: Bench, cell: CellUnderTest, count: int, *roles: str) -> Iterator[Group]:
    """A fresh server of the cell, and with it the cell's client where `roles` says so.

    The window is open: a server records what comes from then on, on either side.
    """
    changes = {"client": _changes(count)}
    changes["server"] = {**changes["client"], "peers.nodes": [SENDER_NODE], "peers.count": 1}
    members = [Member(cell, role, changes[role]) for role in roles]
    with cell.service() as endpoints, Group(made.folder, "service", members, endpoints) as group:
        group.start()
        group.go()
        yield group


def _calls_per_s(made: Bench, cell: CellUnderTest, count: int) -> float:
    """The cell's own client: its calls, over the time from the first one to the last one's end."""
    with _started(made, cell, count, "client", "server") as group:
        group.wait_sent()
        group.finish()
        records = group.samples(group.node("client")).records
    answered = sum(not record.flags for record in records)
    if answered != count:
        raise RuntimeError(f"{cell.name}: {answered} of {count} calls were answered")
    begun_ns = min(record.begin_ns for record in records)
    return count * 1e9 / (max(record.end_ns for record in records) - begun_ns)


def _bare_calls_per_s(made: Bench, cell: CellUnderTest, bare: CellUnderTest, count: int) -> float:
    """What the bare client prints."""
    env = {name: value for name, value in os.environ.items() if "WATTWIRE" not in name}
    with _started(made, cell, count, "server") as group:
        # As the cell's client, it calls a server that records: the window has begun.
        time.sleep(max(0, group.start_ns - time.monotonic_ns()) / 1e9)
        # http://127.0.0.1:8080/echo, or without scheme and path
        endpoint = group.node("server").fields("LISTENING")["endpoints"][0]
        place = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
        argv = [*bare.argv, str(place.hostname), str(place.port), str(count)]
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=HANG_S,
            env={**env, **bare.env}, cwd=made.folder, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{bare.name}: exit {done.returncode}: {done.stderr[-600:].strip()}")
        group.finish()
    return float(done.stdout)
