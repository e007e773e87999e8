"""Comparison of a cell with its bare client, `bare.*` in the folder of the cell's node.

A bare client is a program as a user of the library would write it, without a kit. `bare pong
ENDPOINT…` gets the endpoints of the services, prints the endpoint for ping, and answers until it is
ended; `bare ping ENDPOINT BYTES COUNT` prints the median round trip, in ns, of COUNT calls.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import os
import statistics
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wattwire.rig.harness_costs import HarnessCost
from wattwire.stats import Interval, mean_interval

PAYLOAD_BYTES, CALLS, PAIRS = 64, 1500, 10
START_S = 20.0
HANG_S = 60.0
"""Time limit (s) for a bare client's calls, which take about a second."""


def bare_argv(argv: Sequence[str]) -> list[str] | None:
    """Return the command of a node's bare client; None if the cell has none."""
    for number, word in enumerate(argv):
        path = Path(word)
        bare = path.with_name(f"bare{path.suffix}") if path.suffix and path.is_absolute() else path
        if bare != path and bare.is_file():
            return [*argv[:number], str(bare)]
    return None


@contextlib.contextmanager
def bare_server(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a bare server and yield its first line; RuntimeError if it prints none in time."""
    # A session of its own, as nodes have: the kernel schedules sessions as groups.
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
        start_new_session=True,
    )  # fmt: skip
    guard = threading.Timer(START_S, process.kill)  # a server that is killed ends its output
    guard.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        guard.cancel()
        if not line:
            raise RuntimeError(f"{argv[-1]}: the bare server printed nothing within {START_S:g} s")
        yield line
    finally:
        guard.cancel()
        process.kill()
        with process:  # closes its pipes and waits for it
            pass


def printed_ns(
    argv: Sequence[str], env: Mapping[str, str] | None = None, timeout_s: float = HANG_S
) -> float:
    """Return the time in ns that a program prints."""
    result = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=timeout_s, env=env,
        start_new_session=True,
    )  # fmt: skip
    if result.returncode != 0:
        raise RuntimeError(f"{argv[1]}: exit {result.returncode}: {result.stderr[-300:].strip()}")
    return float(result.stdout)


def bare_round_trip_ns(subject: Any, argv: Sequence[str]) -> float:
    """Return the median round trip of a cell's bare client, with the cell's services."""
    env = {**os.environ, **subject.env}
    with subject.service() as endpoints, bare_server([*argv, "pong", *endpoints], env) as endpoint:
        return printed_ns([*argv, "ping", endpoint, str(PAYLOAD_BYTES), str(CALLS)], env)


def cell_round_trip_ns(subject: Any, folder: Path, count: int = CALLS, **changes: Any) -> float:
    """Return the median round trip of a cell's ping-pong, with back-to-back calls."""
    group_module = importlib.import_module("contract.conformance.group")
    closed = {"loop": "closed", "count": count, "period_ns": 0, "duration_ns": 0}
    keys = {
        "verify": "header", "payload.bytes": PAYLOAD_BYTES, "timeout_ns": 2_000_000_000, **closed,
        "record.capacity": count + 10, "outstanding_max": 1, **changes,
    }  # fmt: skip
    members = [group_module.Member(subject, role, keys) for role in ("ping", "pong")]
    with (
        subject.service() as endpoints,
        group_module.Group(folder, "pingpong", members, endpoints) as group,
    ):
        group.run()
        records = group.samples(group.node("ping")).records
    times = [record.end_ns - record.begin_ns for record in records if not record.flags]
    if len(times) < 0.9 * count:
        raise RuntimeError(f"{subject.name}: {len(times)} of {count} calls were answered")
    return float(statistics.median(times))


def measured_cost(
    ours_ns: Callable[[], float], bare_ns: Callable[[], float], pairs: int = PAIRS
) -> HarnessCost:
    """Measure `pairs` pairs, in alternating order, on one core.

    Without pinning, the two processes may or may not share a core, and waking the other core costs
    several times the work of either.
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
