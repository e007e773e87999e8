"""What counting system calls costs the counted, in the kernel and by strace, and what they tell."""

from __future__ import annotations

import queue
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.nodes import Bench
from bench.pairs import Comparison
from wattwire.design import PlannedRun
from wattwire.model.errors import WattwireError
from wattwire.model.study import TRACED, parse_study
from wattwire.model.treatment import Treatment
from wattwire.model.verdict import Outcome
from wattwire.rig import AgentClient, Builder
from wattwire.run import syscalls
from wattwire.run.convert import quantities_frame, read_all_samples
from wattwire.run.one_run import OneRun
from wattwire.run.prepare import Prepared, prepare
from wattwire.run.specs import node_plans

CELLS = ("tcp/cpp", "tcp/python", "rest/python", "grpc/go")
"""Loads from a call of some 20 µs, all of it system calls, to one of a large library."""
CALLS, CALLS_IN_ALL = 2000, 10_000
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


class Silent:
    """Takes what a run tells of itself, for nobody."""

    def event(self, kind: str, **fields: Any) -> None:
        """Drop it."""


class Load:
    """One cell's calls back to back, run with a way of counting or without one."""

    def __init__(self, made: Bench, cell: str) -> None:
        self.name, self._folder, self._runs = cell, made.folder / "calls" / cell, 0
        self.agent = AgentClient(self._folder / "agent")
        document = {
            "factors": {"cell": [cell]},
            "fixed": {"pattern": "service", "loop": "closed", "count": CALLS,
                      "payload_encoding": "text"},
            "plan": {"baseline_s": 0.02, "quiet_ms": 20, "linger_ms": 50, "controls": False},
        }  # fmt: skip
        self._study = parse_study("bench", document, "bench")
        builder = Builder(self.agent, lambda text: print(f"  {text}", flush=True))
        self._prepared: Prepared = prepare(self._study, made.catalog, builder)

    @property
    def _treatment(self) -> Treatment:
        return self._prepared.treatments[0]

    def us_per_call(self, way: syscalls.Way) -> float:
        """Mean time of a call, from the first one's begin to the last one's end."""
        self._runs += 1
        token = f"wwbench{self._runs}"
        folder = self._folder / token
        for name in ("out", "logs"):
            (folder / name).mkdir(parents=True)
        cells = self._prepared.cells[self._treatment.key]
        middleware = next(iter(cells.values())).middleware
        nodes = node_plans(self._treatment, self._study.plan, cells, middleware, token)
        planned = PlannedRun(token, 1, 1, self._treatment, "", TRACED if way.name else "")
        one = OneRun(
            self.agent, self._study, planned, middleware, nodes, self._prepared.builds, token,
            folder, Silent(),
        )  # fmt: skip
        one.record.tracing = way if way.name else None
        record = one.execute()
        if record.outcome is not Outcome.COMPLETED:
            raise RuntimeError(f"{self.name}: {record.outcome.value}: {record.outcome_detail}")
        client = next(node.node for node in nodes if node.sends)
        parts = [part.records for part in read_all_samples(folder, nodes)[client]]
        records = np.concatenate(parts)
        if len(records) != CALLS:
            raise RuntimeError(f"{self.name}: {len(records)} of {CALLS} calls are recorded")
        return float(records["end_ns"].max() - records["begin_ns"].min()) / 1000 / CALLS


def comparisons(made: Bench, rounds: int) -> Iterator[Comparison]:
    """Each load counted in the kernel, and by strace, beside itself uncounted; rounds of three."""
    for cell in CELLS:
        try:
            load = Load(made, cell)
        except WattwireError as error:
            print(f"  {cell}: absent: {error}", flush=True)
            continue
        try:
            yield from _compared(load, rounds)
        except RuntimeError as error:
            print(f"  {cell}: absent: its runs broke off: {error}", flush=True)
        finally:
            load.agent.close()


def _compared(load: Load, rounds: int) -> Iterator[Comparison]:
    here = syscalls.choose(load.agent.hello)
    ways = [UNTRACED, syscalls.Way(syscalls.TRACER)]
    if here.name == syscalls.KERNEL_PROGRAM:
        ways.insert(1, here)
    else:
        print(f"  {load.name}: not counted in the kernel here: {here.because}", flush=True)
    found: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(rounds):
        turned = ways[number % len(ways) :] + ways[: number % len(ways)]
        # Each order and its reverse, so that no way always follows the same one.
        for way in turned if number // len(ways) % 2 else reversed(turned):
            found[way.name].append(load.us_per_call(way))
    for way in ways[1:]:
        promise = PROMISE if way.name == syscalls.KERNEL_PROGRAM else None
        name = f"{load.name}, {way.name}"
        yield Comparison(name, "µs", tuple(found[way.name]), tuple(found[""]), promise)


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
