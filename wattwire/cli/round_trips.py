"""Measure round trips of cells: against a bare client, and with clients of other cells."""

from __future__ import annotations

import datetime
import importlib
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wattwire.model.deployment import PATTERNS
from wattwire.rig.bare_clients import bare_server, printed_ns
from wattwire.rig.harness_costs import HarnessCost
from wattwire.rig.stranger_calls import StrangerCalls
from wattwire.stats import Interval, mean_interval

PINGPONG = PATTERNS["pingpong"]
PAYLOAD_BYTES, CALLS, PAIRS = 64, 1500, 10
STRANGER_CALLS = 300


def bare_round_trip_ns(subject: Any, argv: Sequence[str]) -> float:
    """Return the median round trip of a cell's bare client in nanoseconds.

    The cell's service processes run during the measurement.
    """
    env = {**os.environ, **subject.env}
    caller, server = PINGPONG.path
    with subject.service() as endpoints, bare_server([*argv, server, *endpoints], env) as endpoint:
        return printed_ns([*argv, caller, endpoint, str(PAYLOAD_BYTES), str(CALLS)], env)


def cell_round_trip_ns(
    subject: Any, folder: Path, count: int = CALLS, client: Any = None, **changes: Any
) -> float:
    """Return the median round trip of a closed ping-pong loop with a cell's server (ns).

    `client` is the cell of the client, by default the same. Raises RuntimeError if fewer than 90 %
    of the calls received a reply.
    """
    group_module = importlib.import_module("contract.conformance.group")
    closed = {"loop": "closed", "count": count, "period_ns": 0, "duration_ns": 0}
    keys = {
        "verify": "header", "payload.bytes": PAYLOAD_BYTES, "timeout_ns": 2_000_000_000, **closed,
        "record.capacity": count + 10, "outstanding_max": 1, **changes,
    }  # fmt: skip
    cells = dict(zip(PINGPONG.path, (client or subject, subject), strict=True))
    members = [group_module.Member(cell, role, keys) for role, cell in cells.items()]
    with (
        subject.service() as endpoints,
        group_module.Group(folder, PINGPONG.name, members, endpoints) as group,
    ):
        group.run()
        records = group.samples(group.node(PINGPONG.sender)).records
    times = [record.end_ns - record.begin_ns for record in records if not record.flags]
    if len(times) < 0.9 * count:
        names = " → ".join(dict.fromkeys(cell.name for cell in cells.values()))
        raise RuntimeError(f"{names}: only {len(times)} of {count} calls received a reply")
    return float(statistics.median(times))


class Strangers:
    """Measures servers with clients of other cells, and each client once with its own server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at_home_us: dict[str, float] = {}

    def measure(self, server: Any, others: Sequence[Any]) -> StrangerCalls:
        """Return the latencies of a server; the cells `others` have the same wire format."""
        strangers_us = {other.name: self._median_us(server, other) for other in others}
        at_home_us = {other.name: self._home_us(other) for other in others}
        day = datetime.date.today().isoformat()
        calls = StrangerCalls(self._home_us(server), strangers_us, at_home_us, day)
        slow = next((other for other in others if other.name in calls.slower_us), None)
        if slow is None or not server.prompt or not slow.prompt:
            return calls
        ((key, value),) = server.prompt.items()
        tuned_us = self._median_us(server, slow, **server.prompt)
        words = str(value).lower() if isinstance(value, bool) else value
        return replace(calls, tuned=f"{key.removeprefix('settings.')} = {words}", tuned_us=tuned_us)

    def _home_us(self, cell: Any) -> float:
        if cell.name not in self._at_home_us:
            self._at_home_us[cell.name] = self._median_us(cell, cell)
        return self._at_home_us[cell.name]

    def _median_us(self, server: Any, client: Any, **changes: Any) -> float:
        return (
            cell_round_trip_ns(server, self._folder, STRANGER_CALLS, client=client, **changes) / 1e3
        )


def measured_cost(
    ours_ns: Callable[[], float], bare_ns: Callable[[], float], pairs: int = PAIRS
) -> HarnessCost:
    """Return the harness's cost, measured in `pairs` interleaved pairs on one core.

    Without pinning, the scheduler decides whether the two processes share a core. Waking another
    core costs several times the work of either process.
    """
    sides: tuple[list[float], list[float]] = ([], [])
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        for number in range(pairs):
            for side in ((0, 1), (1, 0))[number % 2]:
                sides[side].append((ours_ns, bare_ns)[side]() / 1e3)
    finally:
        os.sched_setaffinity(0, allowed)
    added = mean_interval([ours - bare for ours, bare in zip(*sides, strict=True)])
    assert isinstance(added, Interval)
    return HarnessCost(
        added.estimate, added.low, added.high, float(statistics.median(sides[1])), pairs,
        PAYLOAD_BYTES, datetime.date.today().isoformat(),
    )  # fmt: skip
