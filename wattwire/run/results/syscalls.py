"""Count the system calls of a run's process trees, and compute responses from the counts.

System calls are counted in separate control runs, which yield no timed results.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.model.metrics import SYSTEM_CALLS_COUNTED
from wattwire.model.records import SampleFileError, read_regular
from wattwire.run.results.resources import column

CALLS, TIME, ERRORS = SYSTEM_CALLS_COUNTED, "syscall_time", "syscall_errors"
UNCOUNTED, KERNEL, USER = "syscalls_uncounted", "cpu_time_kernel", "cpu_time_user"
KERNEL_PROGRAM, TRACER = "ebpf", "strace"
TABLE = "syscalls.txt"
V2_RUNGS = ("v2", "scope")
TABLE_BYTES_MAX = 1 << 20
TABLE_FIELDS = (5, 6)
"""Possible numbers of fields in a row of strace's table; without errors, a column is empty."""

WAIT_LIKE = frozenset(
    {"clock_nanosleep", "epoll_pwait", "epoll_pwait2", "epoll_wait", "futex", "futex_wait",
     "futex_waitv", "io_getevents", "io_pgetevents", "nanosleep", "pause", "poll", "ppoll",
     "pselect6", "restart_syscall", "rt_sigsuspend", "rt_sigtimedwait", "select", "semtimedop",
     "wait4", "waitid"}
)  # fmt: skip
"""Calls whose purpose is to wait ("wait-like"); all others count as work."""


@dataclass(frozen=True)
class Way:
    """Method of counting system calls: KERNEL_PROGRAM, TRACER, or "" for none.

    `meter` is the agent's meter to read. `because` is the reason why KERNEL_PROGRAM is not used.
    """

    name: str
    meter: str = ""
    because: str = ""


def choose(hello: Mapping[str, Any]) -> Way:
    """Return the counting method for the host whose agent sent `hello`."""
    because = "the agent has no meter of system calls"
    for meter in hello["meters"]:
        if CALLS not in {quantity["name"] for quantity in meter.get("quantities", [])}:
            continue
        rung = hello["cgroup"]["rung"]
        if meter["state"] != "present":
            because = str(meter["reason"])
        elif rung not in V2_RUNGS:
            because = f"the meter needs cgroups of version 2, and the agent uses {rung} here"
        else:
            return Way(KERNEL_PROGRAM, meter=str(meter["name"]))
    if shutil.which(TRACER):
        return Way(TRACER, because=because)
    return Way("", because=f"{because}, and {TRACER} is not installed")


def traced(argv: list[str], out: Path) -> list[str]:
    """Return the command that runs `argv` under strace and writes the table to `out`."""
    return [TRACER, "-c", "-f", "-o", str(out / TABLE), *argv]


def parse_table(text: str) -> dict[str, list[float]]:
    """Return call → [calls, ns of CPU time in the kernel, errors] from `strace -c` output."""
    table: dict[str, list[float]] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) not in TABLE_FIELDS or fields[-1] in ("total", "syscall"):
            continue
        try:
            errors = float(fields[4]) if len(fields) == max(TABLE_FIELDS) else 0.0
            values = [float(fields[3]), float(fields[1]) * 1e9, errors]
        except ValueError:
            continue  # separator between heading and rows
        if all(map(math.isfinite, values)):
            table[fields[-1]] = values
    return table


def from_tables(folder: Path, processes: Iterable[str]) -> dict[str, Any]:
    """Return strace's counts by process, without processes that have no table."""
    counts = {}
    for process in processes:
        path = folder / "out" / process / TABLE
        try:
            calls = parse_table(read_regular(path, TABLE_BYTES_MAX).decode(errors="replace"))
        except SampleFileError:
            calls = {}
        if calls:
            kernel_ns = sum(value[1] for value in calls.values())
            counts[process] = {"calls": calls, "uncounted": 0, "kernel_ns": kernel_ns}
    return counts


def first_reading(quantities: pl.DataFrame, meter: str, span: tuple[int, int]) -> int | None:
    """Return the time (ns) of the meter's first reading in `span`; None without readings.

    The end of the span is excluded.
    """
    times = quantities.filter(pl.col("meter") == meter)["t_ns"]
    first_ns = times.filter((times >= span[0]) & (times < span[1])).min()
    return None if first_ns is None else int(first_ns)  # type: ignore[arg-type]


def from_readings(
    quantities: pl.DataFrame, meter: str, window: tuple[int, int], processes: Iterable[str]
) -> dict[str, Any]:
    """Return the meter's counts by process between the readings at both marks of `window`.

    A series begins with the first call of its kind, and its counter is 0 before that time.
    """
    readings = quantities.filter(pl.col("meter") == meter)
    times = readings["t_ns"].unique().sort()
    edges = [times.filter(times >= t_ns).min() for t_ns in window]
    if edges[1] is None:
        return {}
    if edges[0] == edges[1]:
        edges[0] = -1  # the meter followed no process at the first mark
    begin, end = (
        {
            (row[0], row[1]): row[2]
            for row in readings.filter(pl.col("t_ns") <= edge)
            .sort("t_ns")
            .group_by("quantity", "subject", maintain_order=True)
            .last()
            .select("quantity", "subject", "value")
            .iter_rows()
        }
        for edge in edges
    )

    def increase(quantity: str, subject: str) -> float:
        return float(end.get((quantity, subject), 0.0) - begin.get((quantity, subject), 0.0))

    counts: dict[str, Any] = {}
    for process in processes:
        if (UNCOUNTED, process) not in end:
            continue
        subjects = [s for q, s in end if q == CALLS and s.startswith(f"{process}/")]
        calls = {
            subject.split("/")[-1]: [
                increase(quantity, subject) for quantity in (CALLS, TIME, ERRORS)
            ]
            for subject in sorted(subjects)
        }
        counts[process] = {
            "calls": {name: value for name, value in calls.items() if value[0]},
            "uncounted": increase(UNCOUNTED, process),
        }
        if (KERNEL, process) in end:
            counts[process] |= {
                "kernel_ns": increase(KERNEL, process),
                "user_ns": increase(USER, process),
            }
    return counts


def responses(processes: Mapping[str, Any], sent: int) -> dict[str, float | None]:
    """Return the summary's columns of each process tree. Times are in µs per message."""
    row: dict[str, float | None] = {}
    for process, counts in processes.items():
        calls = counts["calls"]
        waiting_ns = sum(value[1] for name, value in calls.items() if name in WAIT_LIKE)
        working_ns = sum(value[1] for name, value in calls.items() if name not in WAIT_LIKE)
        kernel_ns, user_ns = counts.get("kernel_ns"), counts.get("user_ns")
        spent_ns = waiting_ns + working_ns
        cpu_ns = None if kernel_ns is None or user_ns is None else kernel_ns + user_ns
        metrics = {
            "syscalls_per_message": _ratio(sum(value[0] for value in calls.values()), sent),
            "syscall_working_us_per_message": _ratio(working_ns / 1000, sent),
            "syscall_waiting_us_per_message": _ratio(waiting_ns / 1000, sent),
            "syscall_waiting_share": _ratio(waiting_ns, spent_ns),
            "kernel_us_per_message": None if kernel_ns is None else _ratio(kernel_ns / 1000, sent),
            "kernel_share": None if kernel_ns is None else _ratio(kernel_ns, cpu_ns),
        }
        row |= {column(stem, process): value for stem, value in metrics.items()}
    return row


def _ratio(upper: float, lower: float | None) -> float | None:
    return upper / lower if lower else None
