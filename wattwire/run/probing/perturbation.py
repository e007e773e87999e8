"""Measure how much more CPU time a system needs while a probe reads its topics."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from wattwire.model.errors import WattwireError
from wattwire.rig import AgentClient, CellBuild, host
from wattwire.run.probing.watching import Watch, WatchRequest

PAIRS = 8
SIDE_S = 3.0
"""Length (s) of a measurement with or without the probe."""


def perturbations(
    agent: AgentClient,
    build: CellBuild,
    request: WatchRequest,
    new_folder: Callable[[], Path],
    pairs: int = PAIRS,
    side_s: float = SIDE_S,
) -> list[float]:
    """Return the differences of CPU time, in cores, with the probe minus without, one per pair.

    The CPU time is that of all processes of this machine without the probe itself. The order
    within the pairs alternates, so that a drift of the machine cancels.
    """
    differences = []
    for number in range(pairs):
        used: dict[bool, float] = {}
        for has_probe in (number % 2 == 0, number % 2 == 1):
            if not has_probe:
                used[has_probe] = _others_cores(agent, side_s, None)
                continue
            watch = Watch(agent, build, request, new_folder())
            try:
                watch.wait_settled()
                used[has_probe] = _others_cores(agent, side_s, watch)
            finally:
                watch.close()
        differences.append(used[True] - used[False])
    return differences


def _others_cores(agent: AgentClient, side_s: float, watch: Watch | None) -> float:
    """Return the CPU time of all processes but the probe in the next seconds, in cores."""
    pid = watch.graph.probe["pid"] if watch is not None else None
    own_s, begin_s = _cpu_s(pid), time.monotonic()
    before = agent.request("load")
    if watch is not None:
        watch.sleep(side_s)
    else:
        time.sleep(side_s)
    load = host.load_between(before, agent.request("load"))
    own_cores = (_cpu_s(pid) - own_s) / (time.monotonic() - begin_s)
    return load.busy * host.cores() - own_cores


def _cpu_s(pid: int | None) -> float:
    """Return the CPU time (s) of a process, as clock_getcpuclockid does; 0 without one."""
    if pid is None:
        return 0.0
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError as error:
        raise WattwireError(f"the probe (process {pid}) ended while it was measured") from error
