"""Compare `wattwire exec` with hyperfine and GNU time on three commands.

A command varies between runs by more than the targets, so `exec` measures the tool, which measures
one run of the command, and both have the figures of the same run.

- Wall time: the window of `exec` without hyperfine's own time, which is the median over runs of
  `true` of the window without the time that hyperfine prints.
- CPU time: `exec`'s sum without the row of hyperfine itself, and hyperfine's sum of user and system
  time (getrusage, in µs). GNU time prints hundredths of a second, which is 14 % of the shortest
  command.
- Peak memory: the largest process of another run, in which `exec` measures GNU time.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.packages import is_absent

REPEATS = 20
RUNS_OF_TRUE = 9
TIMEOUT_S = 300.0
WALL_S, CPU_SHARE, PEAK_SHARE = 2e-3, 0.01, 0.02
"""Targets: the largest deviation of each repeat from the reference."""
HYPERFINE, GNU_TIME = "hyperfine", "/usr/bin/time"
GNU_PEAK = re.compile(r"Maximum resident set size \(kbytes\): (\d+)")
LATE = """
import subprocess, sys, time
code = "import time; time.sleep(0.2); block = bytearray(80 << 20); sum(range(6000000))"
time.sleep(0.1)
subprocess.run([sys.executable, "-c", code])
"""
SOURCES = 8
SOURCE = """
#include <math.h>
#include <stdio.h>
double part_{n}(int count) {{
    double sum = 0;
    for (int i = 1; i <= count; i++) sum += sin(i * {n}.5) / i + log(i);
    return sum;
}}
"""
MAKEFILE = """
objects := $(patsubst %.c,%.o,$(wildcard *.c))
program: $(objects)
\tgcc -o $@ $^ -lm
%.o: %.c
\tgcc -O2 -c -o $@ $<
"""


@dataclass
class Figures:
    """Figures of a command, one per repeat: ours, and those of a reference."""

    name: str
    unit: str
    target: float
    is_share: bool = True
    """Whether the target is a share of the reference; otherwise it is in the unit."""
    ours: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)

    def add(self, ours: float, reference: float) -> None:
        """Add the figures of a repeat."""
        self.ours.append(ours)
        self.reference.append(reference)

    def row(self) -> str:
        """Return the table row: medians, number within the target, and the verdict."""
        deviations = [
            (ours - reference) / (reference if self.is_share else 1.0)
            for ours, reference in zip(self.ours, self.reference, strict=True)
        ]
        within = sum(abs(deviation) <= self.target for deviation in deviations)
        scale = 100.0 if self.is_share else 1000.0
        unit = "%" if self.is_share else "ms"
        median = statistics.median
        largest, typical = max(map(abs, deviations)) * scale, median(deviations) * scale
        verdict = "passed" if within == len(deviations) else "failed"
        return (
            f"| {self.name} | {median(self.ours):.4g} {self.unit} | "
            f"{median(self.reference):.4g} {self.unit} | {typical:+.2f} {unit} | "
            f"{largest:.2f} {unit} | ≤ {self.target * scale:g} {unit} | "
            f"{within} of {len(deviations)} | {verdict} |"
        )


def report(repeats: int) -> None:
    """Print the deviations of `exec` from the tools, for each command."""
    print("\n## `wattwire exec` beside hyperfine and GNU time\n")
    absent = [name for name in (HYPERFINE, GNU_TIME, "make", "gcc") if is_absent(name)]
    if absent:
        return
    print(
        "| command and figure | exec, median | reference, median | median deviation | largest | "
        "target | within | verdict |"
    )
    print("|---" * 8 + "|")
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as scratch:
        for name, command, folder in _commands(Path(scratch)):
            for figures in _measured(name, command, folder, Path(scratch), repeats):
                print(figures.row(), flush=True)


def _commands(scratch: Path) -> Iterator[tuple[str, list[str], Path]]:
    """Yield the name, the arguments and the folder of each command."""
    yield "late child of 80 MB", [sys.executable, "-c", LATE], scratch
    yield "one process", [sys.executable, "-c", "sum(range(3000000))"], scratch
    project = scratch / "project"
    project.mkdir()
    for number in range(SOURCES):
        (project / f"part_{number}.c").write_text(SOURCE.format(n=number))
    (project / "main.c").write_text("int main(void) { return 0; }\n")
    (project / "Makefile").write_text(MAKEFILE)
    # -B builds again what is up to date.
    yield "make -j2", ["make", "-s", "-B", "-j2"], project


def _measured(
    name: str, command: list[str], folder: Path, scratch: Path, repeats: int
) -> list[Figures]:
    wall = Figures(f"{name}: wall", "s", WALL_S, is_share=False)
    cpu = Figures(f"{name}: CPU", "s", CPU_SHARE)
    peak = Figures(f"{name}: peak", "MiB", PEAK_SHARE)
    overheads_s = []
    for _ in range(RUNS_OF_TRUE):
        table, measured = _of_one_run(["true"], folder, scratch)
        overheads_s.append(table["repeats"][0]["window_s"] - measured["times"][0])
    overhead_s = statistics.median(overheads_s)
    for _ in range(repeats):
        table, measured = _of_one_run(command, folder, scratch)
        wall.add(table["repeats"][0]["window_s"] - overhead_s, measured["times"][0])
        own_s = next(r["cpu_s"]["mean"] for r in table["processes"] if r["process"] == HYPERFINE)
        cpu.add(table["whole"]["cpu_s"]["mean"] - own_s, measured["user"] + measured["system"])
        peak.add(*_peaks_mib(command, folder, scratch))
    return [wall, cpu, peak]


def _run(argv: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=True, timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _exec_table(command: Sequence[str], folder: Path, scratch: Path) -> dict[str, Any]:
    """Return the table of `wattwire exec` for one run of a command."""
    campaign = scratch / "campaign"
    ours = [sys.executable, "-m", "wattwire", "exec", "--json", "--no-report"]
    try:
        output = _run([*ours, "--campaign", str(campaign), "--", *command], folder).stdout
    finally:
        shutil.rmtree(campaign, ignore_errors=True)
    table = json.loads(output)
    assert isinstance(table, dict)
    return table


def _of_one_run(
    command: Sequence[str], folder: Path, scratch: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the table of `wattwire exec` and the result of hyperfine for the same run."""
    result = scratch / "hyperfine.json"
    options = ["-N", "--style", "none", "--runs", "1", "--export-json", str(result)]
    table = _exec_table([HYPERFINE, *options, shlex.join(command)], folder, scratch)
    return table, json.loads(result.read_text())["results"][0]


def _peaks_mib(command: Sequence[str], folder: Path, scratch: Path) -> tuple[float, float]:
    """Return the peak (MiB) of the largest process: by `exec`, and by GNU time in the same run."""
    result = scratch / "time.txt"
    table = _exec_table([GNU_TIME, "-v", "-o", str(result), *command], folder, scratch)
    peaks_kib = [
        row["memory_peak_kib"]["mean"] for row in table["processes"] if "memory_peak_kib" in row
    ]
    match = GNU_PEAK.search(result.read_text())
    assert match is not None, result.read_text()
    return max(peaks_kib) / 1024, int(match[1]) / 1024
