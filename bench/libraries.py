"""Compare cells with a bare client of their library, and with a tool of their middleware."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.nodes import Bench
from bench.pairs import Comparison, abba, compared
from wattwire.cli.round_trips import bare_round_trip_ns
from wattwire.rig.bare_clients import HANG_S, bare_argv

BYTES, CALLS = 64, 1500
PROMISE = 1.05
PYTHON_PROMISE = 1.10
"""A kit in Python adds several µs to a round trip, independent of the library."""
ROS_MIDDLEWARE = ("ros1", "rosbridge")
"""Middleware of ROS nodes on a robot, which the part copro measures."""
DDSPERF_S = 3
DDS_CONFIGURATION = (
    '<CycloneDDS><Domain Id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces>'
    "<AllowMulticast>false</AllowMulticast></General><Discovery><Peers>"
    '<Peer Address="127.0.0.1"/></Peers><ParticipantIndex>auto</ParticipantIndex></Discovery>'
    "</Domain></CycloneDDS>"
)


def comparisons(workbench: Bench, pairs: int) -> Iterator[Comparison]:
    """Yield a comparison for each cell that can be built on this machine.

    The part copro measures the cells of a robot and its co-processor.
    """
    for name in cells_with_bare_client(workbench):
        if name.partition("/")[0] not in ROS_MIDDLEWARE:
            yield from against_bare_client(workbench, pairs, name, PYTHON_PROMISE)
    yield from _against_ddsperf(workbench, pairs)


def cells_with_bare_client(workbench: Bench) -> Iterator[str]:
    for name in workbench.catalog.cells:
        if any(workbench.catalog.cell(name).folder.glob("bare.*")):
            yield name


def against_bare_client(
    workbench: Bench, pairs: int, name: str, promise: float, program: Path | None = None
) -> Iterator[Comparison]:
    """Yield the comparison of a cell with the bare client in its folder, or with `program`."""
    cell = workbench.cell(name)
    if cell is None:
        return
    bare = bare_argv(cell.argv) if program is None else [str(program)]
    assert bare is not None, f"{name}: no bare client in its folder"
    label = f"{name} against its bare client"
    ours = functools.partial(workbench.ping_ns, cell, CALLS)
    sides = abba(label, ours, functools.partial(bare_round_trip_ns, cell, bare), pairs)
    yield from compared(label, "ns", sides, promise)


@contextlib.contextmanager
def _silent_server(argv: list[str], env: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=env, start_new_session=True
    )
    try:
        yield
    finally:
        process.kill()
        with process:
            pass


def _against_ddsperf(workbench: Bench, pairs: int) -> Iterator[Comparison]:
    """Yield the comparison of the C++ cell of Cyclone DDS with ddsperf.

    Both take messages in a thread that waits on a waitset, as ROS does. ddsperf's default, a
    listener, takes them in the library's receive thread and saves a switch of threads.
    """
    cell = workbench.cell("cyclonedds/cpp")
    if shutil.which("ddsperf") is None:
        print("  ddsperf: absent: not on PATH (Debian: apt install cyclonedds-tools)", flush=True)
        return
    if cell is None:
        return
    env = {**os.environ, "CYCLONEDDS_URI": DDS_CONFIGURATION}

    def tool() -> float:
        """Return the last median round trip in ns.

        ddsperf prints half a round trip, in µs.
        """
        command = ["ddsperf", "-i", "118", "-D"]
        with _silent_server([*command, str(DDSPERF_S + 3), "pong", "waitset"], env):
            argv = [*command, str(DDSPERF_S), "ping", "size", str(BYTES), "waitset"]
            result = subprocess.run(argv, env=env, capture_output=True, text=True, check=False,
                                    timeout=HANG_S)  # fmt: skip
        medians = re.findall(rf" size {BYTES} .* 50% ([0-9.]+)us ", result.stdout)
        if not medians:
            raise RuntimeError(f"ddsperf printed no round trip: {result.stdout[-300:]}")
        return 2000.0 * float(medians[-1])

    label = "cyclonedds/cpp against ddsperf"
    sides = abba(label, lambda: workbench.ping_ns(cell, CALLS), tool, pairs)
    yield from compared(label, "ns", sides, PROMISE)
