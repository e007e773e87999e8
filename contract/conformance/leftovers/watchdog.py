"""End the nodes of a harness and remove their files, however the harness ends.

A node that keeps the contract ends when its standard input closes. A node that does not, and the
processes that it started, would outlive a killed harness and change later measurements.

Usage: python -m leftovers.watchdog, in the folder of the suite, which then is not imported. Each
line of the standard input is a report: `node PID START`, `ended PID` or `file INODE NAME`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from .shared_memory import remove_unused, session_of

SUITE = Path(__file__).resolve().parents[1]
END_S = 5.0
"""Time until killed processes have ended."""


class Watchdog:
    """The watchdog of this process, which starts with the first node."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def node_started(self, pid: int) -> None:
        """Report the process that leads the session of a node."""
        self._report(f"node {pid} {started_ticks(pid)}")

    def node_ended(self, pid: int) -> None:
        """Report that the harness has killed the session of a node."""
        self._report(f"ended {pid}")

    def files_used(self, files: set[tuple[str, int]]) -> None:
        """Report the (name, inode) of files in /dev/shm that belong to nodes."""
        for name, inode in files:
            self._report(f"file {inode} {name}")

    def _report(self, line: str) -> None:
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-S", "-m", "leftovers.watchdog"],
                    stdin=subprocess.PIPE,
                    cwd=SUITE,
                    bufsize=0,
                    # Ctrl-C and the end of a terminal end the harness first.
                    start_new_session=True,
                )
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):  # somebody killed the watchdog
                self._process.stdin.write(f"{line}\n".encode())


def started_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[19])


def end_sessions(leaders: dict[int, int]) -> None:
    """Kill all processes of these sessions (leader and when it started) and wait for their end.

    The number of a session stays in use as long as it has a process. A process with the number of
    a leader that started at another time is of another program.
    """
    deadline_s = time.monotonic() + END_S
    while time.monotonic() < deadline_s:
        pids = [
            pid
            for leader, ticks in leaders.items()
            if started_ticks(leader) in (0, ticks)
            for pid in session_of(leader)
            if Path(f"/proc/{pid}/exe").exists()  # a zombie has none
        ]
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def main() -> None:
    leaders: dict[int, int] = {}
    files: set[tuple[str, int]] = set()
    for line in sys.stdin:
        kind, _, rest = line.rstrip("\n").partition(" ")
        number, _, value = rest.partition(" ")
        if kind == "node":
            leaders[int(number)] = int(value)
        elif kind == "ended":
            leaders.pop(int(number), None)
        else:
            files.add((value, int(number)))
    end_sessions(leaders)
    remove_unused(files)


WATCHDOG = Watchdog()

if __name__ == "__main__":
    main()
