"""What counting system calls costs the counted, in the kernel and by strace, and what they tell."""

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
from wattwire.model.errors import WattwireError
from wattwire.model.study import TRACED, parse_study
from wattwire.model.treatment import Treatment
from wattwire.model.validity import ValidityLimits
from wattwire.model.verdict import Outcome
from wattwire.rig import AgentClient, Builder, host
from wattwire.run.node_specs import node_plans
from wattwire.run.resolve_cells import Prepared, prepare
from wattwire.run.results import syscalls
from wattwire.run.results.convert import open_all_samples, quantities_frame
from wattwire.run.runner import OneRun

CELLS = ("tcp/cpp", "tcp/python", "rest/python", "grpc/go")
"""Loads from a call of some 20 µs, all of it system calls, to one of a large library."""
SIDE_S = 0.3
"""How long the uncounted calls of a round should take, within what CALLS allows."""
CALLS = (200, 20_000)
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
    """Hears of a run's phases, and reads before and after its window what the host took."""

    def __init__(self) -> None:
        self._times: dict[str, host.CpuTimes] = {}

    def event(self, kind: str, **fields: Any) -> None:
        """The window begins with its phase and ends with the drain's."""
        if kind == "phase":
            self._times[fields["phase"]] = host.cpu_times()

    @property
    def steal_share(self) -> float:
        """CPU time that the hypervisor kept for others in the window, of all cores'."""
        before, after = self._times["window"], self._times["drain"]
        return (after.steal - before.steal) / max(1, after.total - before.total)


@dataclass(frozen=True)
class Side:
    """One run of a round: the mean time of its calls, and what the host took meanwhile."""

    us_per_call: float
    steal_share: float


class Load:
    """One cell's calls back to back, run with a way of counting or without one."""

    def __init__(self, made: Bench, cell: str, side_s: float) -> None:
        self.name, self._folder, self._runs = cell, made.folder / "calls" / cell, 0
        self._made = made
        self.agent = AgentClient(self._folder / "agent")
        self._plan_for(TRIAL_CALLS)
        trial = self.side(UNTRACED).us_per_call
        calls = round(side_s * 1e6 / trial, -2)
        self._plan_for(int(min(max(calls, CALLS[0]), CALLS[1])))

    def _plan_for(self, calls: int) -> None:
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
        """A fresh server and client; times count from the first call's begin to the last's end."""
        self._runs += 1
        token = f"wwbench{self._runs}"
        folder = self._folder / token
        for name in ("out", "logs"):
            (folder / name).mkdir(parents=True)
        cells = self._prepared.cells[self._treatment.key]
        middleware = next(iter(cells.values())).middleware
        nodes = node_plans(self._treatment, self._study.plan, cells, middleware, token)
        planned = PlannedRun(token, 1, 1, self._treatment, "", TRACED if way.name else "")
        watch = Watch()
        one = OneRun(
            self.agent, self._study, planned, middleware, nodes, self._prepared.builds, token,
            folder, watch,
        )  # fmt: skip
        one.record.tracing = way if way.name else None
        record = one.execute()
        if record.outcome is not Outcome.COMPLETED:
            raise RuntimeError(f"{self.name}: {record.outcome.value}: {record.outcome_detail}")
        client = next(node.node for node in nodes if node.sends)
        files = open_all_samples(folder, nodes)[client]
        records = np.concatenate([piece for file in files for piece in file.chunks()])
        if len(records) != self.calls:
            raise RuntimeError(f"{self.name}: {len(records)} of {self.calls} calls are recorded")
        took_ns = float(records["end_ns"].max() - records["begin_ns"].min())
        return Side(took_ns / 1000 / self.calls, watch.steal_share)


def comparisons(
    made: Bench, rounds: int, patterns: Sequence[str], side_s: float
) -> Iterator[Comparison]:
    """Each load counted in the kernel, and by strace, beside itself uncounted; rounds of three."""
    for cell in CELLS:
        if not any(fnmatch(cell, pattern) for pattern in patterns):
            continue
        load = None
        try:
            with _unpreempted():
                load = Load(made, cell, side_s)
            yield from _compared(load, rounds)
        except WattwireError as error:
            print(f"  {cell}: absent: {error}", flush=True)
        except RuntimeError as error:
            print(f"  {cell}: absent: its runs broke off: {error}", flush=True)
        finally:
            if load is not None:
                load.agent.close()


@contextlib.contextmanager
def _unpreempted() -> Iterator[None]:
    """What is started here runs on until it waits, whoever wakes meanwhile (SCHED_BATCH).

    Else a run of two nodes on one core settles for one of two ways: who is called interrupts the
    caller at once, or does not. They are apart by 40 % of a short call, more than counting costs.
    """
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _compared(load: Load, rounds: int) -> Iterator[Comparison]:
    here = syscalls.choose(load.agent.hello)
    ways = [UNTRACED, syscalls.Way(syscalls.TRACER)]
    if here.name == syscalls.KERNEL_PROGRAM:
        ways.insert(1, here)
    else:
        print(f"  {load.name}: not counted in the kernel here: {here.because}", flush=True)
    began_s = time.monotonic()
    found: dict[str, list[float]] = {way.name: [] for way in ways}
    kept = disturbed = 0
    while kept < rounds and disturbed < rounds:
        sides = {way.name: load.side(way) for way in _order(ways, kept)}
        steal_share = max(side.steal_share for side in sides.values())
        quiet = steal_share <= STEAL_MAX
        _say(f"{load.name}, round {kept + 1} of {rounds}", sides, steal_share, quiet)
        if not quiet:
            disturbed += 1  # and the same order comes again
            continue
        kept += 1
        for name, side in sides.items():
            found[name].append(side.us_per_call)
    print(
        f"  {load.name}: {kept} rounds of {load.calls} calls in {time.monotonic() - began_s:.0f} s"
        f", {disturbed} more set aside as the host took over {STEAL_MAX:.0%} of the CPUs",
        flush=True,
    )
    if kept < rounds:
        raise RuntimeError(f"{kept} of {rounds} rounds were undisturbed by the host")
    for way in ways[1:]:
        promise = PROMISE if way.name == syscalls.KERNEL_PROGRAM else None
        name = f"{load.name}, {way.name}"
        yield Comparison(name, "µs", tuple(found[way.name]), tuple(found[""]), promise)


def _order(ways: Sequence[syscalls.Way], number: int) -> list[syscalls.Way]:
    """Each order turned and then its reverse, so that no way always follows the same one."""
    turn = number % len(ways)
    turned = [*ways[turn:], *ways[:turn]]
    return turned if number // len(ways) % 2 else turned[::-1]


def _say(where: str, sides: dict[str, Side], steal_share: float, quiet: bool) -> None:
    """A line of a round's figures for who waits; what the bench found is said on the other one."""
    bare = sides[UNTRACED.name].us_per_call
    told = ", ".join(
        f"{name or 'uncounted'} {side.us_per_call:.1f} µs ({side.us_per_call / bare:.3f})"
        for name, side in sides.items()
    )
    aside = "" if quiet else "; set aside"
    print(f"  {where}: {told}; stolen {steal_share:.1%}{aside}", file=sys.stderr, flush=True)


def agreement(made: Bench) -> Iterator[tuple[str, float | None, float | None]]:
    """Each call of KNOWN with its count in the kernel and by strace; None where one may not."""
    folder = made.folder / "agreement"
    folder.mkdir()
    program = [sys.executable, "-S", "-c", PROGRAM]
    subprocess.run(syscalls.traced(program, folder), check=True, timeout=HANG_S)
    theirs = syscalls.parse_table((folder / syscalls.TABLE).read_text())
    ours = _counted(folder, program)
    for name in KNOWN:
        yield name, ours.get(name), theirs[name][0] if name in theirs else None


def _counted(folder: Path, program: Sequence[str]) -> dict[str, float]:
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
        frame = quantities_frame("r", "h", readings, series)
        found = syscalls.from_readings(frame, way.meter, (began_ns, ended_ns), ["program"])
        return {name: value[0] for name, value in found["program"]["calls"].items()}
    finally:
        agent.close()
