"""Measure the cost of recording layers: time per event, and latency of a profiled pipeline."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.nodes import Bench
from bench.pairs import Comparison, abba, compared
from bench.peers.pipeline import MESSAGES, RELAYS, latencies_ns
from contract.conformance.cell import CellUnderTest
from wattwire.rig.layer_library import preload
from wattwire.run.layers.recorder import prepared_library
from wattwire.run.layers.recordings import read_recordings

CELL = "ros2/cpp-rcl"
EVENTS = 1_000_000
EVENT_NS, LATENCY = 100.0, 1.05
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


def event_times_ns(workbench: Bench, runs: int) -> list[float]:
    """Return the mean time (ns) of an event in each of `runs` processes of 10⁶ events."""
    program = workbench.folder / "layer_events"
    source = Path(__file__).parents[1] / "bare" / "layer_events.c"
    subprocess.run(["gcc", "-O2", "-Wall", "-o", program, source], check=True)
    recordings = Recordings(workbench.folder / "events")
    times_ns = []
    for _ in range(runs):
        result = subprocess.run(
            [program, str(EVENTS)], env={**os.environ, **recordings.environment()},
            capture_output=True, text=True, check=True, timeout=HANG_S,
        )  # fmt: skip
        recordings.empty(1, EVENTS)
        times_ns.append(float(result.stdout))
    return times_ns


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
