"""Compare the cells of ROS 1 and the clients of rosbridge with bare loops of their libraries.

The bare loop of a cell is `bare.py` in its folder. That of ros1/cpp must be compiled, and is
`bench/bare/roscpp.cpp`. The loops of rosbridge use the same bridge as the cells.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.nodes import Bench
from bench.pairs import Comparison
from bench.peers.libraries import ROS_MIDDLEWARE, against_bare_client, cells_with_bare_client

PROMISE = 1.05
ROSCPP = "ros1/cpp"
SOURCE = Path(__file__).parents[1] / "bare" / "roscpp.cpp"


def comparisons(workbench: Bench, pairs: int) -> Iterator[Comparison]:
    """Yield a comparison for each cell that can be built on this machine."""
    for name in cells_with_bare_client(workbench):
        if name.partition("/")[0] in ROS_MIDDLEWARE:
            yield from against_bare_client(workbench, pairs, name, PROMISE)
    if (program := bare_roscpp(workbench.folder)) is not None:
        yield from against_bare_client(workbench, pairs, ROSCPP, PROMISE, program)


def bare_roscpp(folder: Path) -> Path | None:
    """Compile the bare loop of roscpp, or print why it is absent and return None."""
    libraries = "pkg-config"
    if shutil.which(libraries) is None:
        print(f"  {ROSCPP}: absent: {libraries} is not on PATH", flush=True)
        return None
    flags = subprocess.run(
        [libraries, "--cflags", "--libs", "roscpp"], capture_output=True, text=True, check=False
    )
    if flags.returncode != 0:
        print(f"  {ROSCPP}: absent: {flags.stderr.splitlines()[0]}", flush=True)
        return None
    program = folder / "roscpp"
    compiler = ["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-pthread"]
    subprocess.run([*compiler, SOURCE, "-o", program, *flags.stdout.split()], check=True)
    return program
