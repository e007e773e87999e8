"""Find and run bare clients: programs that use a library directly, without a kit.

The bare client of a cell is `bare.*` in the folder of its node. `bare pong ENDPOINT…` takes the
endpoints of the services, prints the endpoint for ping, and answers calls until it is killed. `bare
ping ENDPOINT BYTES COUNT` prints the median round trip of COUNT calls, in ns.
"""

from __future__ import annotations

import contextlib
import importlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wattwire.rig.children import first_line

START_S = 20.0
HANG_S = 60.0
"""Time limit for a bare client's calls, which take about a second."""


def bare_argv(argv: Sequence[str]) -> list[str] | None:
    """Return the command of a node's bare client, or None if the cell has no bare client."""
    for number, word in enumerate(argv):
        path = Path(word)
        bare = path.with_name(f"bare{path.suffix}") if path.suffix and path.is_absolute() else path
        if bare != path and bare.is_file():
            return [*argv[:number], str(bare)]
    return None


@contextlib.contextmanager
def bare_server(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a bare server and yield its first line.

    Raise RuntimeError if it does not print a line in time.
    """
    process = _watched(argv, env)
    try:
        try:
            line = first_line(process, START_S).strip()
        except TimeoutError:
            line = ""
        if not line:
            raise RuntimeError(f"{argv[-1]}: the bare server printed no line within {START_S:g} s")
        yield line
    finally:
        process.kill()
        with process:  # closes the pipes and waits for the process
            pass


def printed_ns(
    argv: Sequence[str], env: Mapping[str, str] | None = None, timeout_s: float = HANG_S
) -> float:
    """Run a program and return the time (ns) that it prints."""
    process = _watched(argv, env, stderr=subprocess.PIPE)
    with process:
        try:
            output, errors = process.communicate(timeout=timeout_s)
        finally:
            process.kill()
    if process.returncode != 0:
        raise RuntimeError(f"{argv[1]}: exit {process.returncode}: {errors[-300:].strip()}")
    return float(output)


def _watched(
    argv: Sequence[str], env: Mapping[str, str] | None, **options: Any
) -> subprocess.Popen[str]:
    """Start a program that also ends if this process is killed; it may ignore its closed input."""
    # Each node has a separate session, because the kernel schedules sessions as groups.
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
        start_new_session=True, **options,
    )  # fmt: skip
    # The suite is part of a clone, as are all bare clients.
    leftovers = importlib.import_module("contract.conformance.leftovers.watchdog")
    leftovers.WATCHDOG.node_started(process.pid)
    return process
