"""Measure time and memory for the page of a large package, from raw files and the store."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench import package
from bench.turns import on_cores

STUDY = "ros2-energy"
CORES = 2
MEGABYTE = 1e6


@dataclass
class Measured:
    """Seconds and megabytes of each repetition, and the size of the package."""

    written: package.Written
    import_s: list[float] = field(default_factory=list)
    import_mb: list[float] = field(default_factory=list)
    report_s: list[float] = field(default_factory=list)
    report_mb: list[float] = field(default_factory=list)
    again_s: list[float] = field(default_factory=list)
    page_mb: float = 0.0


def measure(repetitions: int) -> Measured:
    """Measure an import, a new report and a repeated report, each as a process on CORES cores.

    The new report has no stored figures. The repeated report can use the figures of the same data.
    """
    with (
        tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name,
        on_cores(*sorted(os.sched_getaffinity(0))[:CORES]),
    ):
        source, campaign = Path(name, "package"), Path(name, "campaign")
        measured = Measured(package.write(source))
        for _ in range(repetitions):
            shutil.rmtree(campaign, ignore_errors=True)
            arguments = ["import", STUDY, str(source), "--campaign", str(campaign)]
            seconds, megabytes = _run(arguments)
            measured.import_s.append(seconds)
            measured.import_mb.append(megabytes)
            shutil.rmtree(campaign / "report")
            seconds, megabytes = _run(["report", str(campaign)])
            measured.report_s.append(seconds)
            measured.report_mb.append(megabytes)
            measured.again_s.append(_run(["report", str(campaign)])[0])
        measured.page_mb = (campaign / "report" / "index.html").stat().st_size / MEGABYTE
        return measured


def _run(arguments: list[str]) -> tuple[float, float]:
    """Return the wall time (s) and the peak memory (MB) of `wattwire ARGUMENTS`."""
    begun_s = time.monotonic()
    command = [sys.executable, "-m", "wattwire", *arguments]
    discard_output = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(command[0], command, os.environ, file_actions=discard_output)
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        code = os.waitstatus_to_exitcode(status)
        raise RuntimeError(f"wattwire {' '.join(arguments)}: exit {code}")
    return time.monotonic() - begun_s, usage.ru_maxrss * 1024 / MEGABYTE
