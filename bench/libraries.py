"""Comparison of cells with a bare client of their library, and with their middleware's own tool."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.nodes import Bench
from bench.pairs import Comparison, abba, compared

BARE = Path(__file__).with_name("bare")
BYTES, CALLS = 64, 1500
PROMISE = 1.05
PYTHON_PROMISE = 1.10
"""A kit in Python adds some µs to a round trip, whatever the library takes."""
START_S = 20.0
HANG_S = 60.0
"""How long a bare client may take for its calls, which last a second."""
DDSPERF_S = 3
DDS_CONFIGURATION = (
    '<CycloneDDS><Domain Id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces>'
    "<AllowMulticast>false</AllowMulticast></General><Discovery><Peers>"
    '<Peer Address="127.0.0.1"/></Peers><ParticipantIndex>auto</ParticipantIndex></Discovery>'
    "</Domain></CycloneDDS>"
)


@contextlib.contextmanager
def server(
    argv: list[str], env: dict[str, str] | None = None, speaks: bool = True
) -> Iterator[str]:
    """Run a bare server and yield its first line of output, "" unless it `speaks`."""
    output = subprocess.PIPE if speaks else subprocess.DEVNULL
    # A session of its own, as nodes have: the kernel schedules sessions as groups, and to go from
    # one to another takes longer than to go from process to process.
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=output, text=True, env=env, start_new_session=True
    )
    # A server that says nothing is killed, and its output ends.
    guard = threading.Timer(START_S, process.kill)
    guard.start()
    try:
        line = process.stdout.readline().strip() if process.stdout else ""
        guard.cancel()
        if speaks and not line:
            raise RuntimeError(f"{argv[-1]}: the bare server printed nothing within {START_S:g} s")
        yield line
    finally:
        guard.cancel()
        process.kill()
        process.wait()


def printed_ns(
    argv: list[str], env: dict[str, str] | None = None, timeout_s: float = HANG_S
) -> float:
    """Return the time in ns that a program prints."""
    result = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=timeout_s, env=env,
        start_new_session=True,
    )  # fmt: skip
    if result.returncode != 0:
        raise RuntimeError(f"{argv[1]}: exit {result.returncode}: {result.stderr[-300:].strip()}")
    return float(result.stdout)


def free_port() -> int:
    """Return a free TCP port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def comparisons(workbench: Bench, pairs: int) -> Iterator[Comparison]:
    """Yield a comparison for each cell that can be built on this machine."""
    yield from _against_script(
        workbench, pairs, "mqtt/python", "mqtt_pair.py", lambda ends: ends[0].split(":")
    )
    yield from _against_script(workbench, pairs, "zenoh/python", "zenoh_query.py",
                       lambda _: [f"tcp/127.0.0.1:{free_port()}"])  # fmt: skip
    yield from _against_script(
        workbench, pairs, "cyclonedds/python", "cyclone_pair.py", lambda _: ["117"]
    )
    yield from _against_ddsperf(workbench, pairs)


def _against_script(
    workbench: Bench,
    pairs: int,
    name: str,
    script: str,
    arguments_of: Callable[[list[str]], list[str]],
) -> Iterator[Comparison]:
    """Yield the comparison of a cell with a bare client in `script`.

    `arguments_of` returns the script's arguments for the endpoints of the service.
    """
    cell = workbench.cell(name)
    if cell is None:
        return
    program = [cell.argv[0], str(BARE / script)]
    env = {**os.environ, **cell.env}

    def bare_client() -> float:
        with cell.service() as endpoints:
            arguments = arguments_of(list(endpoints))
            with server([*program, "pong", *arguments], env):
                return printed_ns([*program, "ping", *arguments, str(BYTES), str(CALLS)], env)

    label = f"{name} against {script}"
    sides = abba(label, lambda: workbench.ping_ns(cell, CALLS), bare_client, pairs)
    yield from compared(label, "ns", sides, PYTHON_PROMISE)


def _against_ddsperf(workbench: Bench, pairs: int) -> Iterator[Comparison]:
    """Yield the comparison of the C++ cell of Cyclone DDS with ddsperf."""
    cell = workbench.cell("cyclonedds/cpp")
    if cell is None or shutil.which("ddsperf") is None:
        return
    env = {**os.environ, "CYCLONEDDS_URI": DDS_CONFIGURATION}

    def tool() -> float:
        """Return the last median round trip in ns; ddsperf prints half of one in µs each second."""
        command = ["ddsperf", "-i", "118", "-D"]
        with server([*command, str(DDSPERF_S + 3), "pong"], env, speaks=False):
            argv = [*command, str(DDSPERF_S), "ping", "size", str(BYTES)]
            result = subprocess.run(argv, env=env, capture_output=True, text=True, check=False,
                                    timeout=HANG_S)  # fmt: skip
        medians = re.findall(rf" size {BYTES} .* 50% ([0-9.]+)us ", result.stdout)
        if not medians:
            raise RuntimeError(f"ddsperf printed no round trip: {result.stdout[-300:]}")
        return 2000.0 * float(medians[-1])

    label = "cyclonedds/cpp against ddsperf"
    sides = abba(label, lambda: workbench.ping_ns(cell, CALLS), tool, pairs)
    yield from compared(label, "ns", sides, PROMISE)
