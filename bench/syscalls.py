"""Measure the cost of counting system calls in the kernel and by strace, and the agreement."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from bench.nodes import Bench, tell_build
from bench.pairs import Comparison
from wattwire.design import PlannedRun
from wattwire.hosts.hosts import here
from wattwire.model.deployment import HOST, Deployment
from wattwire.model.errors import WattwireError
from wattwire.model.study import TRACED, parse_study
from wattwire.model.treatment import Treatment
from wattwire.model.validity import ValidityLimits
from wattwire.model.verdict import Outcome
from wattwire.rig import AgentClient, Builder, host
from wattwire.run.record import OpenAttempt
from wattwire.run.resolve_cells import Prepared, prepare
from wattwire.run.results import syscalls
from wattwire.run.results.convert import open_all_samples, quantities_frame
from wattwire.run.runner import OneRun, RunSetup

CELLS = ("tcp/cpp", "tcp/python", "rest/python", "grpc/go")
"""Loads from a call of about 20 µs, entirely system calls, to a call of a large library."""
SIDE_S = 0.3
"""Intended duration of the uncounted calls of a round, within the limits of CALLS."""
CALLS = (200, 20_000)
"""Fewest and most calls of one side."""
TRIAL_CALLS = 300
STEAL_MAX = ValidityLimits().steal_max
CALLS_IN_ALL = 10_000
PROMISE, AGREEMENT = 1.2, 0.02
UNTRACED = syscalls.Way("")
HANG_S = 120.0
PROGRAM = f"""
import os
for _ in range({CALLS_IN_ALL}): os.getppid()
null = os.open("/dev/null", os.O_WRONLY)
for _ in range({CALLS_IN_ALL}): os.write(null, b"x")
for _ in range({CALLS_IN_ALL}): os.sched_yield()
"""
KNOWN = ("getppid", "write", "sched_yield")


class Watch:
    """A listener for the phases of a run. It requests the load at both ends of the window."""

    def __init__(self, agent: AgentClient) -> None:
        self._agent = agent
        self._load: dict[str, dict[str, int]] = {}

    def event(self, kind: str, **fields: Any) -> None:
        """Record the load at both ends of the window, which ends when the drain starts."""
        if kind == "phase" and fields["phase"] in ("window", "drain"):
            self._load[fields["phase"]] = self._agent.request("load")

    @property
    def steal_share(self) -> float:
        """Return the share of the time of all cores that the hypervisor took in the window."""
        return host.load_between(self._load["window"], self._load["drain"]).steal


@dataclass(frozen=True)
class Side:
    """One run of a round: the mean time of its calls, and the share of CPU that the host took."""

    us_per_call: float
    steal_share: float


class Load:
    """Consecutive calls of one cell, with or without a method of counting system calls."""

    def __init__(self, workbench: Bench, cell: str, side_s: float) -> None:
        self.name, self._folder, self._runs = cell, workbench.folder / "calls" / cell, 0
        self._made = workbench
        self.agent = AgentClient(self._folder / "agent")
        self._plan_for(TRIAL_CALLS)
        trial_us = self.side(UNTRACED).us_per_call
        calls = round(side_s * 1e6 / trial_us, -2)
        self._plan_for(int(min(max(calls, CALLS[0]), CALLS[1])))

    def _plan_for(self, calls: int) -> None:
        """Prepare runs with this number of calls."""
        self.calls = calls
        document = {
            "factors": {"cell": [self.name]},
            "fixed": {"pattern": "service", "loop": "closed", "count": calls,
                      "payload_encoding": "text"},
            "plan": {"baseline_s": 0.02, "quiet_ms": 20, "linger_ms": 50, "controls": False},
        }  # fmt: skip
        self._study = parse_study("bench", document, "bench")
        builder = Builder(self.agent, tell_build)
        self._prepared: Prepared = prepare(self._study, self._made.catalog, builder)

    @property
    def _treatment(self) -> Treatment:
        return self._prepared.treatments[0]

    def side(self, way: syscalls.Way) -> Side:
        """Run a new server and client, and return the mean time of their calls.

        The time runs from the begin of the first call to the end of the last call.
        """
        self._runs += 1
        token = f"wwbench{self._runs}"
        folder = self._folder / token
        for name in ("out", "logs"):
            (folder / name).mkdir(parents=True)
        planned = PlannedRun(token, 1, 1, self._treatment, "", TRACED if way.name else "")
        attempt = OpenAttempt(self._study, planned, 1, token, folder)
        placed, hosts = self._prepared.placed[self._treatment.key], {HOST: here(self.agent)}
        setup = RunSetup.of_nodes(attempt, placed, hosts, self._prepared.builds)
        watch = Watch(self.agent)
        run = OneRun(attempt, setup, watch)
        run.record.tracing = way if way.name else None
        record = run.execute()
        if record.outcome is not Outcome.COMPLETED:
            raise RuntimeError(f"{self.name}: {record.outcome.value}: {record.outcome_detail}")
        client = next(node.node for node in record.nodes if node.sends)
        files = open_all_samples(folder, record.nodes)[client]
        records = np.concatenate([chunk for file in files for chunk in file.chunks()])
        if len(records) != self.calls:
            raise RuntimeError(f"{self.name}: {len(records)} of {self.calls} calls are recorded")
        elapsed_ns = float(records["end_ns"].max() - records["begin_ns"].min())
        return Side(elapsed_ns / 1000 / self.calls, watch.steal_share)


def comparisons(
    workbench: Bench, rounds: int, patterns: Sequence[str], side_s: float
) -> Iterator[Comparison]:
    """Yield the comparisons of each load with and without counting, in the kernel and by strace.

    A round has one run of each.
    """
    for cell in CELLS:
        if not any(fnmatch(cell, pattern) for pattern in patterns):
            continue
        load = None
        try:
            with _unpreempted():
                load = Load(workbench, cell, side_s)
            yield from _compare(load, rounds)
        except WattwireError as error:
            print(f"  {cell}: absent: {error}", flush=True)
        except RuntimeError as error:
            print(f"  {cell}: absent: its runs broke off: {error}", flush=True)
        finally:
            if load is not None:
                load.agent.close()


@contextlib.contextmanager
def _unpreempted() -> Iterator[None]:
    """Start processes with SCHED_BATCH, so that no process that wakes up preempts them.

    Otherwise, a run of two nodes on one core has one of two behaviours: the called node preempts
    the caller at once, or it does not. They differ by 40 % of a short call, which is more than the
    cost of counting.
    """
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _compare(load: Load, rounds: int) -> Iterator[Comparison]:
    """Yield the comparison of each counting method, over rounds that the host did not disturb.

    Raise RuntimeError if too many rounds were excluded.
    """
    available = syscalls.choose(load.agent.hello)
    ways = [UNTRACED, syscalls.Way(syscalls.TRACER)]
    if available.name == syscalls.KERNEL_PROGRAM:
        ways.insert(1, available)
    else:
        print(f"  {load.name}: not counted in the kernel here: {available.because}", flush=True)
    began_s = time.monotonic()
    us_per_call: dict[str, list[float]] = {way.name: [] for way in ways}
    valid = disturbed = 0
    while valid < rounds and disturbed < rounds:
        sides = {way.name: load.side(way) for way in _order(ways, valid)}
        steal_share = max(side.steal_share for side in sides.values())
        quiet = steal_share <= STEAL_MAX
        _print_progress(f"{load.name}, round {valid + 1} of {rounds}", sides, steal_share, quiet)
        if not quiet:
            disturbed += 1  # the next round has the same order
            continue
        valid += 1
        for name, side in sides.items():
            us_per_call[name].append(side.us_per_call)
    print(
        f"  {load.name}: {valid} rounds of {load.calls} calls in {time.monotonic() - began_s:.0f} s"
        f", {disturbed} more excluded as the host took over {STEAL_MAX:.0%} of the CPUs",
        flush=True,
    )
    if valid < rounds:
        raise RuntimeError(f"{valid} of {rounds} rounds were undisturbed by the host")
    for way in ways[1:]:
        promise = PROMISE if way.name == syscalls.KERNEL_PROGRAM else None
        name = f"{load.name}, {way.name}"
        yield Comparison(name, "µs", tuple(us_per_call[way.name]), tuple(us_per_call[""]), promise)


def _order(ways: Sequence[syscalls.Way], number: int) -> list[syscalls.Way]:
    """Return the order of a round: rotations of `ways`, first reversed and then unreversed.

    This prevents one method from always following the same other method.
    """
    shift = number % len(ways)
    rotated = [*ways[shift:], *ways[:shift]]
    return rotated if number // len(ways) % 2 else rotated[::-1]


def _print_progress(place: str, sides: dict[str, Side], steal_share: float, quiet: bool) -> None:
    """Print a line of progress to standard error. Results are printed to standard output."""
    uncounted_us = sides[UNTRACED.name].us_per_call
    texts = ", ".join(
        f"{name or 'uncounted'} {side.us_per_call:.1f} µs ({side.us_per_call / uncounted_us:.3f})"
        for name, side in sides.items()
    )
    suffix = "" if quiet else "; excluded"
    print(f"  {place}: {texts}; stolen {steal_share:.1%}{suffix}", file=sys.stderr, flush=True)


def agreement(workbench: Bench) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield each call of KNOWN with its counts in the kernel and by strace.

    A count is None if its method is not available.
    """
    folder = workbench.folder / "agreement"
    folder.mkdir()
    program = [sys.executable, "-S", "-c", PROGRAM]
    subprocess.run(syscalls.traced(program, folder), check=True, timeout=HANG_S)
    by_strace = syscalls.parse_table((folder / syscalls.TABLE).read_text())
    in_kernel = _counted_in_kernel(folder, program)
    for name in KNOWN:
        yield name, in_kernel.get(name), by_strace[name][0] if name in by_strace else None


def _counted_in_kernel(folder: Path, program: Sequence[str]) -> dict[str, float]:
    """Return the kernel's counts of a program's system calls; empty if it cannot count them."""
    agent = AgentClient(folder / "agent")
    try:
        way = syscalls.choose(agent.hello)
        if way.name != syscalls.KERNEL_PROGRAM:
            return {}
        events: queue.Queue[dict[str, Any]] = queue.Queue()
        agent.subscribe("program", events)
        readings = folder / "readings.bin"
        agent.request(
            "sample_start", path=str(readings), tick_hz=1, meters=[way.meter], subjects={},
            marks_only=True,
        )  # fmt: skip
        began_ns = agent.request("mark", name="begin")["t_ns"]
        agent.request(
            "spawn", process="program", run="wwbench0", argv=list(program), env={},
            cwd=str(folder), stdout=str(folder / "program.out"),
        )  # fmt: skip
        while events.get(timeout=HANG_S).get("event") != "exit":
            pass
        ended_ns = agent.request("mark", name="end")["t_ns"]
        series = agent.request("sample_stop")["series"]
        frame = quantities_frame("r", Deployment(()), readings, series)
        counts = syscalls.from_readings(frame, way.meter, (began_ns, ended_ns), ["program"])
        return {name: value[0] for name, value in counts["program"]["calls"].items()}
    finally:
        agent.close()
