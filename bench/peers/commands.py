"""Compare `wattwire exec` with hyperfine and GNU time on three commands.

- Wall time: the median of `RUNS` runs in each repeat. The same command varies between runs, so
  hyperfine also measures it twice; if hyperfine deviates from itself by more than the target, the
  result is undecided. Both tools let the machine idle for as long before each run.
- CPU time: GNU time prints hundredths of a second, which is 14 % of the shortest command. The
  reference is therefore hyperfine's sum of user and system time (getrusage, in µs), of the same
  run: `exec` measures hyperfine, which measures the command.
- Peak memory: the largest process, as GNU time prints it.
"""

from __future__ import annotations

import json
import os
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
RUNS = 5
IDLE_S = 0.4
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
    again: list[float] = field(default_factory=list)
    """A second measurement by the reference, if the command varies between runs."""

    def add(self, ours: float, reference: float, *again: float) -> None:
        """Add the figures of a repeat."""
        self.ours.append(ours)
        self.reference.append(reference)
        self.again += again

    def deviations(self, values: Sequence[float]) -> list[float]:
        """Return the deviation of each value from the reference, in the unit of the target."""
        return [
            abs(value - reference) / (reference if self.is_share else 1.0)
            for value, reference in zip(values, self.reference, strict=True)
        ]

    def row(self) -> str:
        """Return the table row: medians, number within the target, and the verdict."""
        ours, again = self.deviations(self.ours), self.deviations(self.again or self.reference)
        within = [sum(d <= self.target for d in side) for side in (ours, again)]
        count = len(ours)
        verdict = "passed" if within[0] == count else "failed"
        if within[1] < count and verdict == "failed":
            verdict = "undecided"
        scale = 100.0 if self.is_share else 1000.0
        unit = "%" if self.is_share else "ms"
        signed = [a - b for a, b in zip(self.ours, self.reference, strict=True)]
        median = statistics.median
        bias = median(signed) / (median(self.reference) if self.is_share else 1.0)
        control = f"{within[1]} of {count}" if self.again else "–"
        return (
            f"| {self.name} | {median(self.ours):.4g} {self.unit} | "
            f"{median(self.reference):.4g} {self.unit} | {bias * scale:+.2f} {unit} | "
            f"{max(ours) * scale:.2f} {unit} | ≤ {self.target * scale:g} {unit} | "
            f"{within[0]} of {count} | {control} | {verdict} |"
        )


def report(repeats: int) -> None:
    """Print the deviations of `exec` from the tools, for each command."""
    print("\n## `wattwire exec` beside hyperfine and GNU time\n")
    absent = [name for name in (HYPERFINE, GNU_TIME, "make", "gcc") if is_absent(name)]
    if absent:
        return
    print(
        "| command and figure | exec, median | reference, median | median deviation | largest | "
        "target | within | reference against itself | verdict |"
    )
    print("|---" * 9 + "|")
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
    for repeat in range(repeats):
        sides = [_exec, _hyperfine, _hyperfine]
        # The order changes, so that a drift of the machine favours none.
        order = [(repeat + place) % 3 for place in range(3)]
        results = {side: sides[side](command, folder, scratch, RUNS) for side in order}
        ours, reference, again = results[0], results[1], results[2]
        wall.add(ours["wall_s"], reference["wall_s"], again["wall_s"])
        peak.add(ours["peak_mib"], _gnu_peak_mib(command, folder))
        cpu.add(*_cpu_of_one_run(command, folder, scratch))
    return [wall, cpu, peak]


def _run(argv: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=True, timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _exec_table(command: Sequence[str], folder: Path, scratch: Path, runs: int) -> dict[str, Any]:
    """Return the table of `wattwire exec` for a command."""
    campaign = scratch / "campaign"
    # Half of the time before a run, half after it.
    options = ["--campaign", str(campaign), "--repeat", str(runs), "--baseline", f"{IDLE_S}s"]
    argv = [sys.executable, "-m", "wattwire", "exec", "--json", "--no-report", *options]
    try:
        table = json.loads(_run([*argv, "--", *command], folder).stdout)
    finally:
        shutil.rmtree(campaign, ignore_errors=True)
    assert isinstance(table, dict)
    return table


def _exec(command: Sequence[str], folder: Path, scratch: Path, runs: int) -> dict[str, float]:
    table = _exec_table(command, folder, scratch, runs)
    rows = table["processes"]
    peaks_kib = [row["memory_peak_kib"]["mean"] for row in rows if "memory_peak_kib" in row]
    walls_s = [repeat["window_s"] for repeat in table["repeats"]]
    return {"wall_s": statistics.median(walls_s), "peak_mib": max(peaks_kib) / 1024}


def _hyperfine_argv(command: Sequence[str], result: Path, runs: int) -> list[str]:
    """Return the arguments of hyperfine without a shell."""
    options = ["-N", "--style", "none", "--runs", str(runs), "--export-json", str(result)]
    return [HYPERFINE, *options, shlex.join(command)]


def _hyperfine(command: Sequence[str], folder: Path, scratch: Path, runs: int) -> dict[str, float]:
    result = scratch / "hyperfine.json"
    _run([*_hyperfine_argv(command, result, runs), "--prepare", f"sleep {IDLE_S}"], folder)
    return {"wall_s": statistics.median(json.loads(result.read_text())["results"][0]["times"])}


def _cpu_of_one_run(command: Sequence[str], folder: Path, scratch: Path) -> tuple[float, float]:
    """Return the CPU time (s) of a run in the table of `exec`, and that of hyperfine.

    `exec` measures hyperfine, whose own row is subtracted.
    """
    result = scratch / "nested.json"
    table = _exec_table(_hyperfine_argv(command, result, 1), folder, scratch, 1)
    own_s = next(r["cpu_s"]["mean"] for r in table["processes"] if r["process"] == HYPERFINE)
    measured = json.loads(result.read_text())["results"][0]
    return table["whole"]["cpu_s"]["mean"] - own_s, measured["user"] + measured["system"]


def _gnu_peak_mib(command: Sequence[str], folder: Path) -> float:
    environment = {**os.environ, "LC_ALL": "C"}
    result = subprocess.run(
        [GNU_TIME, "-v", *command], cwd=folder, capture_output=True, text=True, check=True,
        env=environment, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    match = GNU_PEAK.search(result.stderr)
    assert match is not None, result.stderr
    return int(match[1]) / 1024
