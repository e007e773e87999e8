"""Compare cells with clients of their library, and with a tool of their middleware.

The bare client of a cell is the library's documented loop. The fair client (`fair.*` next to it) is
the same loop with the contract's work per message.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.nodes import Bench
from bench.pairs import Comparison, abba, compared, interleaved
from contract.conformance.cell import CellUnderTest
from contract.conformance.leftovers.watchdog import WATCHDOG
from wattwire.cli.round_trips import bare_round_trip_ns
from wattwire.rig.bare_clients import HANG_S, bare_argv

CONTRACT_WORK = Path(__file__).parents[1] / "bare"
"""Folder of the contract's work for fair clients, in Python and in C."""
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
    """Yield the comparisons of each cell that can be built on this machine.

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
    """Yield the comparisons of a cell with the bare client in its folder, or with `program`.

    If the folder also has a fair client, the promise is that for the fair client.
    """
    cell = workbench.cell(name)
    if cell is None:
        return
    bare = bare_argv(cell.argv) if program is None else [str(program)]
    assert bare is not None, f"{name}: no bare client in its folder"
    ours = functools.partial(workbench.ping_ns, cell, CALLS)
    peer = functools.partial(bare_round_trip_ns, cell, bare)
    fair = fair_argv(bare)
    if fair is None:
        label = f"{name} against its bare client"
        yield from compared(label, "ns", abba(label, ours, peer, pairs), promise)
        return
    fair_ns = functools.partial(bare_round_trip_ns, with_contract_work(cell), fair)
    yield from against_both(name, "its bare client", (ours, peer, fair_ns), pairs, promise)


def against_both(
    name: str,
    bare_name: str,
    sides: tuple[Callable[[], float], Callable[[], float], Callable[[], float]],
    pairs: int,
    promise: float,
) -> Iterator[Comparison]:
    """Yield the comparisons of a cell with its bare and its fair client, and of these clients.

    `sides` measure the cell, the bare client and the fair client, in ns. Only the comparison with
    the fair client has a promise, because no node can avoid the contract's work.
    """
    cell, bare, fair = interleaved(name, sides, pairs)
    yield from compared(f"{name} against {bare_name}", "ns", (cell, bare), None)
    yield from compared(f"{name} against its fair client", "ns", (cell, fair), promise)
    yield from compared(f"{name}: its fair client against {bare_name}", "ns", (fair, bare), None)


def fair_argv(bare: Sequence[str]) -> list[str] | None:
    """Return the command of the fair client next to a bare client, or None if there is none."""
    path = Path(bare[-1])
    fair = path.with_name(f"fair{path.suffix}")
    return [*bare[:-1], str(fair)] if fair != path and fair.is_file() else None


def with_contract_work(cell: CellUnderTest) -> CellUnderTest:
    """Return the cell with an environment in which Python finds the module `contract_work`."""
    folders = filter(None, [str(CONTRACT_WORK), cell.env.get("PYTHONPATH")])
    return replace(cell, env={**cell.env, "PYTHONPATH": os.pathsep.join(folders)})


@contextlib.contextmanager
def _silent_server(argv: list[str], env: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=env, start_new_session=True
    )
    WATCHDOG.node_started(process.pid)
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

    fair = [str(fair_program(workbench, cell))]
    sides = (
        functools.partial(workbench.ping_ns, cell, CALLS),
        tool,
        functools.partial(bare_round_trip_ns, cell, fair),
    )
    yield from against_both("cyclonedds/cpp", "ddsperf", sides, pairs, PROMISE)


def fair_program(workbench: Bench, cell: CellUnderTest) -> Path:
    """Compile the fair client of the C++ cell, with the types of the cell's build."""
    build, program = Path(cell.argv[0]).parent, workbench.folder / "fair-cyclonedds"
    source = workbench.catalog.cell(cell.name).folder / "fair.cpp"
    compiler = ["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-pthread"]
    command = [*compiler, f"-I{build}", f"-I{CONTRACT_WORK}", source, build / "wattwire.o"]
    subprocess.run([*command, "-o", program, "-lddsc"], check=True)
    return program
