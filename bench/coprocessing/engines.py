"""Compare the AES-128 engines of `coproc` with `openssl speed`, in 16 KiB buffers.

The engines are the sources of the cells, linked with a loop (`bench/bare/engine_speed.c`) instead
of a device. Both sides repeat the encryption of the same buffer with one key, and divide by their
CPU time, as `openssl speed` does by default. The mask of OPENSSL_ia32cap is that of the cell
openssl-masked.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.nodes import Bench
from bench.pairs import Comparison, abba, compared
from wattwire.catalog import Cell
from wattwire.model.errors import MissingError
from wattwire.rig.builds import check_requirements

SOURCE = Path(__file__).parents[1] / "bare" / "engine_speed.c"
BYTES, SECONDS = 16384, 1
HANG_S = 60.0
MASK = "OPENSSL_ia32cap"
MASKED = "coproc/openssl-masked"


class Engine(NamedTuple):
    """A cell's engine, the mask of both sides, and the promised share of `openssl speed`."""

    cell: str
    source: str
    libraries: tuple[str, ...]
    is_peer_masked: bool
    promise: float


ENGINES = (
    Engine("coproc/openssl", "openssl.c", ("-lcrypto",), False, 0.95),
    Engine(MASKED, "openssl.c", ("-lcrypto",), True, 0.95),
    Engine("coproc/scalar", "scalar.c", (), True, 0.5),
)


def comparisons(workbench: Bench, pairs: int) -> Iterator[Comparison]:
    """Yield a comparison for each engine that can be built on this machine."""
    if shutil.which("openssl") is None:
        print("  engines: absent: openssl is not on PATH (Debian: apt install openssl)", flush=True)
        return
    mask = workbench.catalog.cell(MASKED).document["run"]["env"][MASK]
    for engine in ENGINES:
        cell = workbench.catalog.cell(engine.cell)
        try:
            check_requirements(cell)
        except MissingError as error:
            print(f"  {engine.cell}: absent: {error}", flush=True)
            continue
        program = compiled(cell, engine, workbench.folder)
        environment = {**os.environ, **({MASK: mask} if engine.is_peer_masked else {})}
        label = f"{engine.cell} against `openssl speed`"
        label += f", {MASK}={mask}" if engine.is_peer_masked else ""
        ours = functools.partial(engine_mb_per_s, program, environment)
        sides = abba(label, ours, functools.partial(openssl_mb_per_s, environment), pairs)
        yield from compared(label, "MB/s", sides, engine.promise, at_least=True)


def compiled(cell: Cell, engine: Engine, folder: Path) -> Path:
    """Return a program with the loop and a cell's engine, compiled with the flags of the cell."""
    device = cell.middleware.folder / "environment" / "device"
    program = folder / engine.cell.replace("/", "-")
    subprocess.run(
        ["gcc", "-std=c11", "-O3", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", f"-I{device}",
         SOURCE, device / engine.source, *engine.libraries, "-o", program],
        check=True,
    )  # fmt: skip
    return program


def engine_mb_per_s(program: Path, environment: Mapping[str, str]) -> float:
    return float(_output([str(program), str(BYTES), str(SECONDS)], environment))


def openssl_mb_per_s(environment: Mapping[str, str]) -> float:
    """Return the throughput that `openssl speed` prints for machines, in MB/s."""
    command = ["openssl", "speed", "-mr", "-bytes", str(BYTES), "-seconds", str(SECONDS)]
    return parsed_mb_per_s(_output([*command, "-evp", "aes-128-ecb"], environment))


def parsed_mb_per_s(output: str) -> float:
    """Return the last field of the line `+F:INDEX:NAME:BYTES_PER_SECOND`, in MB/s."""
    rows = [line.split(":") for line in output.splitlines() if line.startswith("+F:")]
    if len(rows) != 1:
        raise RuntimeError(f"openssl speed printed {len(rows)} results: {output[-300:]}")
    return float(rows[0][-1]) / 1e6


def _output(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: exit {done.returncode}: {done.stderr[-300:].strip()}")
    return done.stdout
