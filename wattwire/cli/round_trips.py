"""Measure the harness's cost by interleaved round trips of a cell and its bare client."""

from __future__ import annotations

import datetime
import importlib
import os
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wattwire.model.deployment import PATTERNS
from wattwire.rig.bare_clients import bare_server, printed_ns
from wattwire.rig.harness_costs import HarnessCost
from wattwire.stats import Interval, mean_interval

PINGPONG = PATTERNS["pingpong"]
PAYLOAD_BYTES, CALLS, PAIRS = 64, 1500, 10


def bare_round_trip_ns(subject: Any, argv: Sequence[str]) -> float:
    """Return the median round trip of a cell's bare client in nanoseconds.

    The cell's service processes run during the measurement.
    """
    env = {**os.environ, **subject.env}
    caller, server = PINGPONG.path
    with subject.service() as endpoints, bare_server([*argv, server, *endpoints], env) as endpoint:
        return printed_ns([*argv, caller, endpoint, str(PAYLOAD_BYTES), str(CALLS)], env)


def cell_round_trip_ns(subject: Any, folder: Path, count: int = CALLS, **changes: Any) -> float:
    """Return the median round trip of a cell's closed ping-pong loop in nanoseconds.

    Raises RuntimeError if fewer than 90 % of the calls received a reply.
    """
    group_module = importlib.import_module("contract.conformance.group")
    closed = {"loop": "closed", "count": count, "period_ns": 0, "duration_ns": 0}
    keys = {
        "verify": "header", "payload.bytes": PAYLOAD_BYTES, "timeout_ns": 2_000_000_000, **closed,
        "record.capacity": count + 10, "outstanding_max": 1, **changes,
    }  # fmt: skip
    members = [group_module.Member(subject, role, keys) for role in PINGPONG.path]
    with (
        subject.service() as endpoints,
        group_module.Group(folder, PINGPONG.name, members, endpoints) as group,
    ):
        group.run()
        records = group.samples(group.node(PINGPONG.sender)).records
    times = [record.end_ns - record.begin_ns for record in records if not record.flags]
    if len(times) < 0.9 * count:
        raise RuntimeError(f"{subject.name}: only {len(times)} of {count} calls received a reply")
    return float(statistics.median(times))


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
