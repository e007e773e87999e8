"""Cells beside a bare client of the same library, and beside their middleware's own tool."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.nodes import Bench
from bench.pairs import Comparison, abba

BARE = Path(__file__).with_name("bare")
BYTES, CALLS = 64, 1500
PROMISE = 1.05
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
    """A bare server; yields the first line it prints (where it `speaks`). Ended at the end."""
    output = subprocess.PIPE if speaks else subprocess.DEVNULL
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=output, text=True, env=env)
    try:
        yield process.stdout.readline().strip() if process.stdout else ""
    finally:
        process.kill()
        process.wait()


def printed_ns(argv: list[str], env: dict[str, str] | None = None) -> float:
    """What a program prints, a time in ns."""
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120, env=env)
    return float(done.stdout)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def comparisons(made: Bench, pairs: int) -> Iterator[Comparison]:
    """One comparison for each cell that can be built here."""
    yield from _beside(made, pairs, "mqtt/python", "mqtt_pair.py", lambda ends: ends[0].split(":"))
    yield from _beside(made, pairs, "zenoh/python", "zenoh_query.py",
                       lambda _: [f"tcp/127.0.0.1:{free_port()}"])  # fmt: skip
    yield from _beside(made, pairs, "cyclonedds/python", "cyclone_pair.py", lambda _: ["117"])
    yield from _beside_ddsperf(made, pairs)


def _beside(
    made: Bench, pairs: int, name: str, script: str, where: Callable[[list[str]], list[str]]
) -> Iterator[Comparison]:
    """The cell beside `script`, which is told `where` from the service's endpoints."""
    cell = made.cell(name)
    if cell is None:
        return
    program = [cell.argv[0], str(BARE / script)]
    env = {**os.environ, **cell.env}

    def bare() -> float:
        with cell.service() as endpoints:
            place = where(list(endpoints))
            with server([*program, "pong", *place], env):
                return printed_ns([*program, "ping", *place, str(BYTES), str(CALLS)], env)

    ours, peer = abba(lambda: made.ping_ns(cell, CALLS), bare, pairs)
    yield Comparison(f"{name} against {script}", "ns", ours, peer, PROMISE)


def _beside_ddsperf(made: Bench, pairs: int) -> Iterator[Comparison]:
    cell = made.cell("cyclonedds/cpp")
    if cell is None or shutil.which("ddsperf") is None:
        return
    env = {**os.environ, "CYCLONEDDS_URI": DDS_CONFIGURATION}

    def tool() -> float:
        """ddsperf prints half of a round trip, each second: the last median, doubled, in ns."""
        both = ["ddsperf", "-i", "118", "-D"]
        with server([*both, str(DDSPERF_S + 3), "pong"], env, speaks=False):
            argv = [*both, str(DDSPERF_S), "ping", "size", str(BYTES)]
            told = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        medians = re.findall(rf" size {BYTES} .* 50% ([0-9.]+)us ", told.stdout)
        if not medians:
            raise RuntimeError(f"ddsperf printed no round trip: {told.stdout[-300:]}")
        return 2000.0 * float(medians[-1])

    ours, peer = abba(lambda: made.ping_ns(cell, CALLS), tool, pairs)
    yield Comparison("cyclonedds/cpp against ddsperf", "ns", ours, peer, PROMISE)
