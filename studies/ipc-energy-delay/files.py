"""One file of the authors' package at a time: samples of a meter, `time`, `/usr/bin/time -v`.

Each reader takes bytes and says what it found, or why it found nothing. None of them raises on
damaged content.
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from pathlib import Path

TAIL_BYTES = 8192
"""So much of a file's end is read for times: megabytes of captured output may stand before."""
HEAD_BYTES = 4096
"""So much of a file's beginning is searched for clock times and errors."""
ENERGY_BYTES_MAX = 4_000_000
SAMPLE_MAX_W = 10_000.0
"""No machine of such a study draws more; a larger number is damage."""

_REAL = re.compile(
    r"^real\s+(?:(\d+)h)?(\d+)m(\d+(?:\.\d+)?)s\s*\n"
    r"user\s+(?:(\d+)h)?(\d+)m(\d+(?:\.\d+)?)s\s*\n"
    r"sys\s+(?:(\d+)h)?(\d+)m(\d+(?:\.\d+)?)s\s*\Z",
    re.MULTILINE,
)
_VERBOSE = {
    "memory_max_kib": re.compile(r"^\s*Maximum resident set size \(kbytes\): (\d+)\s*$", re.M),
    "faults_minor": re.compile(r"^\s*Minor \(reclaiming a frame\) page faults: (\d+)\s*$", re.M),
    "switches_voluntary": re.compile(r"^\s*Voluntary context switches: (\d+)\s*$", re.M),
    "exit_status": re.compile(r"^\s*Exit status: (\d+)\s*$", re.M),
}
_ELAPSED = re.compile(
    r"^\s*Elapsed \(wall clock\) time \(h:mm:ss or m:ss\): ((?:\d+:)?\d+:\d+(?:\.\d+)?)\s*$", re.M
)
_USER = re.compile(r"^\s*User time \(seconds\): (\d+(?:\.\d+)?)\s*$", re.M)
_SYSTEM = re.compile(r"^\s*System time \(seconds\): (\d+(?:\.\d+)?)\s*$", re.M)
_ERRORS = re.compile(
    r"Unhandled Exception[^\n]*|Exception in thread[^\n]*|Traceback \(most recent call last\)"
    r"|Connection refused|PHP Fatal error[^\n]*|^panic: [^\n]*|BUILD FAILURE",
    re.MULTILINE,
)
_CLOCKS = (
    (re.compile(r"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)"), "%Y/%m/%d %H:%M:%S"),
    (re.compile(r"\[(\d\d/[A-Z][a-z]{2}/\d{4} \d\d:\d\d:\d\d)\]"), "%d/%b/%Y %H:%M:%S"),
    (
        re.compile(r"([A-Z][a-z]{2} \d\d, \d{4} \d{1,2}:\d\d:\d\d [AP]M)"),
        "%b %d, %Y %I:%M:%S %p",
    ),
)


@dataclass(frozen=True)
class Samples:
    """A meter's readings, in watts, one a second; `bad` counts lines that are none."""

    watts: tuple[float, ...]
    bad: int


def ends(path: Path) -> tuple[str, str]:
    """Beginning and end of a file as text. Raises OSError where it can't be read."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        tail = file.read(TAIL_BYTES)
    return _text(head), _text(tail)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace").replace("\r\n", "\n")


def samples(path: Path) -> Samples | str:
    """The lines of an energy file, or why there are none. Raises OSError."""
    if path.stat().st_size > ENERGY_BYTES_MAX:
        return "energy file too long for a meter that is read once a second"
    lines = _text(path.read_bytes()).split("\n")
    watts, bad = [], 0
    for line in lines:
        if not line.strip():
            continue
        number = _watts(line)
        if number is None:
            bad += 1
        else:
            watts.append(number)
    if not watts:
        return "energy file without a sample (the authors' 0, missing)" if not bad else (
            "energy file without a line that is a number")  # fmt: skip
    return Samples(tuple(watts), bad)


def _watts(line: str) -> float | None:
    if not re.fullmatch(r"\s*\d+(\.\d*)?\s*", line, re.ASCII):
        return None
    number = float(line)
    return number if math.isfinite(number) and number <= SAMPLE_MAX_W else None


def times(tail: str) -> tuple[float, float] | None:
    """Elapsed and CPU seconds from the lines that `time` leaves at a file's end."""
    found = _REAL.search(tail)  # nothing but blanks may follow, so there is one at most
    if found is None:
        return None
    part = found.groups()
    real, user, system = (
        3600.0 * float(part[at] or 0) + 60.0 * float(part[at + 1]) + float(part[at + 2])
        for at in (0, 3, 6)
    )
    return real, user + system


def resources(tail: str) -> dict[str, float]:
    """What `/usr/bin/time -v` says at a file's end; lines that are not there are left out."""
    found = {}
    for name, line in _VERBOSE.items():
        match = line.search(tail)
        if match:
            found[name] = float(match[1])
    elapsed = _ELAPSED.search(tail)
    if elapsed:
        seconds = 0.0
        for part in elapsed[1].split(":"):
            seconds = 60.0 * seconds + float(part)
        found["elapsed_s"] = seconds
    user, system = _USER.search(tail), _SYSTEM.search(tail)
    if user and system:
        found["cpu_s"] = float(user[1]) + float(system[1])
    return found


def error(head: str, tail: str) -> str:
    """The first line of captured output that says a program failed; empty where none does."""
    match = _ERRORS.search(head) or _ERRORS.search(tail)
    return " ".join(match[0].partition(" --->")[0].split())[:80] if match else ""


def clock(head: str) -> datetime.datetime | None:
    """The first clock time in captured output, local to the machine."""
    for pattern, form in _CLOCKS:
        match = pattern.search(head)
        if match:
            try:
                return datetime.datetime.strptime(match[1], form)
            except ValueError:
                return None
    return None
