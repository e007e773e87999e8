"""Measure the cost of recording layers: time per event, latency and memory of profiled nodes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.nodes import Bench, peak_mib
from bench.pairs import Comparison, abba, compared
from bench.peers.pipeline import MESSAGES, RELAYS, latencies_ns
from contract.conformance.cell import CellUnderTest
from contract.conformance.group import Group, Member
from contract.conformance.roles import PATTERNS
from wattwire.rig.layer_library import preload
from wattwire.run.layers.recorder import prepared_library
from wattwire.run.layers.recordings import read_recordings

CELL = "ros2/cpp-rcl"
EVENTS = 1_000_000
EVENT_NS, LATENCY, OF_UPROBE, MEMORY_MIB = 100.0, 1.05, 0.2, 64.0
UPROBE_EVENTS = 20_000
"""Events of a process with a uprobe, which can cost 60 µs each in a virtual machine."""
FUNCTION = "ros_trace_rmw_publish"
CALLS = 66_000
"""Calls of a ping-pong in which either node records 10⁶ events."""
MEMORY_PAIRS = 3
"""Pairs of the memory, which scatters by less than 1 %."""
HANG_S = 60.0


class Recordings:
    """A folder for the files of recorded processes, which is emptied after each run."""

    def __init__(self, folder: Path) -> None:
        self._library, _ = prepared_library()
        self.folder = folder / "layers"
        self.folder.mkdir(parents=True)

    def environment(self) -> dict[str, str]:
        """Return the variables of recorded processes."""
        return preload(self._library, self.folder, dict(os.environ))

    def empty(self, processes: int, events: int) -> None:
        """Remove all files.

        Raises RuntimeError if not as many processes recorded this number of events each: a side
        without a recording would cost nothing.
        """
        recordings = read_recordings(self.folder)
        complete = [r for r in recordings if r.events >= events and not (r.lost or r.problem)]
        if len(complete) < processes:
            counts = [(r.events, r.lost, r.problem) for r in recordings]
            raise RuntimeError(
                f"found {len(complete)} processes with {events} recorded events or more, expected "
                f"{processes}; events, lost events and problem of each process: {counts}"
            )
        shutil.rmtree(self.folder)
        self.folder.mkdir()


class Events:
    """A program that records events, with the library or by a uprobe."""

    def __init__(self, folder: Path) -> None:
        source = Path(__file__).parents[1] / "bare" / "layer_events.c"
        self._program, self._probed = folder / "layer_events", folder / "probed_events"
        for program, words in ((self._program, []), (self._probed, ["-DEMPTY_EVENT"])):
            subprocess.run(["gcc", "-O2", "-Wall", *words, "-o", program, source], check=True)
        self._recordings = Recordings(folder / "events")

    def library_ns(self) -> float:
        """Return the mean time (ns) of an event in a process of 10⁶ events with the library."""
        result = subprocess.run(
            [self._program, str(EVENTS)],
            env={**os.environ, **self._recordings.environment()},
            capture_output=True, text=True, check=True, timeout=HANG_S,
        )  # fmt: skip
        self._recordings.empty(1, EVENTS)
        return float(result.stdout)

    def uprobe_ns(self) -> float:
        """Return the mean time (ns) of an empty function with a bpftrace uprobe.

        The uprobe only stores the time, so it does less than the library, which also stores the
        arguments of each event. Raises RuntimeError with what bpftrace prints if it cannot probe.
        """
        probe = f"uprobe:{self._probed}:{FUNCTION} {{ @ = nsecs; }}"
        result = subprocess.run(
            ["bpftrace", "-e", probe, "-c", f"{self._probed} {UPROBE_EVENTS}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            timeout=HANG_S,
        )  # fmt: skip
        time_ns = re.search(r"^\d+\.\d+$", result.stdout, re.MULTILINE)
        # A uprobe that was hit has stored a time.
        if time_ns is None or re.search(r"^@: [1-9]\d*$", result.stdout, re.MULTILINE) is None:
            raise RuntimeError(f"bpftrace exited with {result.returncode}: {result.stdout.strip()}")
        return float(time_ns[0])


def event_times_ns(workbench: Bench, runs: int) -> list[float]:
    """Return the mean time (ns) of an event in each of `runs` processes of 10⁶ events."""
    events = Events(workbench.folder)
    return [events.library_ns() for _ in range(runs)]


def uprobe_comparisons(workbench: Bench, pairs: int) -> Iterator[Comparison]:
    """Yield the comparison of an event (ns) with a uprobe, or print why there is no uprobe."""
    label = "an event against a bpftrace uprobe"
    folder = workbench.folder / "uprobe"
    folder.mkdir()
    events = Events(folder)
    try:
        events.uprobe_ns()
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"  {label}: absent: {' '.join(str(error).split())}", flush=True)
        return
    sides = abba(label, events.library_ns, events.uprobe_ns, pairs)
    yield from compared(label, "ns", sides, OF_UPROBE)


def peaks_mib(workbench: Bench, pairs: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the largest peak of resident memory (MiB) of two nodes, recorded and plain, per pair.

    The nodes are those of a ping-pong, and both record at least 10⁶ events.
    """
    cell = workbench.cell(CELL)
    if cell is None:
        return (), ()
    recordings = Recordings(workbench.folder / "memory")
    recorded = replace(cell, env={**cell.env, **recordings.environment()})
    keys = {
        "verify": "header", "payload.bytes": 64, "timeout_ns": 2_000_000_000, "loop": "closed",
        "count": CALLS, "period_ns": 0, "duration_ns": 0, "record.capacity": CALLS + 10,
        "outstanding_max": 1,
    }  # fmt: skip

    def largest_mib(side: CellUnderTest) -> float:
        pattern = PATTERNS["pingpong"]
        members = [Member(side, role, keys) for role in (pattern.sender, pattern.receiver)]
        with Group(workbench.folder, "pingpong", members, []) as group:
            group.start()
            group.go()
            group.wait_sent()
            peak = max(peak_mib(node.pid) for node in group.nodes)
            group.finish()
        recordings.empty(2 if side is recorded else 0, EVENTS)
        return peak

    label = f"{CELL}, memory of a node"
    return abba(label, lambda: largest_mib(recorded), lambda: largest_mib(cell), pairs)


def comparisons(workbench: Bench, pairs: int) -> Iterator[Comparison]:
    """Yield the comparison of a pipeline's median latency (ns), recorded and plain."""
    cell = workbench.cell(CELL)
    if cell is None:
        return
    recordings = Recordings(workbench.folder / "pipeline")
    recorded = replace(cell, env={**cell.env, **recordings.environment()})

    def latency_ns(side: CellUnderTest) -> float:
        (median_ns,) = latencies_ns(workbench.folder, side, [])
        is_recorded = side is recorded
        recordings.empty(RELAYS + 2 if is_recorded else 0, MESSAGES)
        return median_ns

    label = f"{CELL}, pipeline of 8 nodes, recorded against plain"
    sides = abba(label, lambda: latency_ns(recorded), lambda: latency_ns(cell), pairs)
    yield from compared(label, "ns", sides, LATENCY)
