"""Run two programs in turns on one core: each is stopped while the other runs.

The CPU time that a shared host takes varies within milliseconds and seconds. Consecutive runs of a
second have different conditions. Alternating slices of a few milliseconds have the same conditions,
and the end of a slice, on the same core, shows whether the host took the core.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SLICE_NS = (2e6, 4e6)
"""Shortest and longest slice; a random length keeps periodic events from hitting only one side."""
AWAY_NS = 1_000_000
"""Maximum delay of a wake-up on the core. After a longer delay, the host had the core."""

NO_REAL_TIME_NOTICE = (
    "  real-time scheduling is not permitted, so other load disturbs the measurement\n"
)
"""Line of a bench whose processes share their core with others."""


@dataclass
class Turn:
    """One of the two programs: a process group, and whether its timed part is finished.

    The program runs at the start. Times are in ns of CLOCK_MONOTONIC.
    """

    group: int
    is_done: Callable[[], bool]
    slices: list[tuple[int, int]] = field(default_factory=list)
    """Intervals (begin, end) in which the program could run. The times are read between the
    signals, so no interval is too long.
    """
    _since_ns: int | None = field(default_factory=time.monotonic_ns)

    def stop(self) -> None:
        self.end_slice(time.monotonic_ns())
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        self._since_ns = time.monotonic_ns()

    def end_slice(self, t_ns: int) -> None:
        if self._since_ns is not None:
            self.slices.append((self._since_ns, t_ns))
            self._since_ns = None

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # the process has already ended
            os.killpg(self.group, number)

    def active_ns(self, begin_ns: int, end_ns: int) -> int:
        """Return the time (ns) that the program could run between two times."""
        return sum(max(0, min(to, end_ns) - max(since, begin_ns)) for since, to in self.slices)


def place(session: int, core: int) -> None:
    """Restrict the threads of a session, and later threads, to one core."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process has ended
            if int(stat.read_text().rpartition(")")[2].split()[3]) != session:
                continue
            for task in stat.with_name("task").iterdir():
                os.sched_setaffinity(int(task.name), {core})


@contextlib.contextmanager
def on_cores(*cores: int) -> Iterator[None]:
    """Restrict this thread, and processes that it starts within the context, to these cores."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@contextlib.contextmanager
def real_time_on_last_core() -> Iterator[bool]:
    """Give one core to this thread and the processes that it starts, before all others.

    Nice values do not achieve this, because the kernel schedules sessions as groups. Yield whether
    real-time scheduling is permitted; if not, the processes share the core with others.
    """
    with on_cores(max(os.sched_getaffinity(0))):
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        except PermissionError:
            yield False
            return
        try:
            yield True
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def take_turns(first: Turn, second: Turn, timeout_s: float, seed: int) -> None:
    """Run `first` and `second` in turns until both are finished.

    A program that continues alone still runs in slices, so that the time when the host had the core
    is also subtracted for it.
    """
    lengths = random.Random(seed)
    deadline_s = time.monotonic() + timeout_s
    running, waiting = first, second
    waiting.stop()
    running.resume()
    try:
        while not (running.is_done() and waiting.is_done()):
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"two programs were not both done after {timeout_s:g} s")
            due_ns = time.monotonic_ns() + round(lengths.uniform(*SLICE_NS))
            time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
            woken_ns = time.monotonic_ns()
            running.end_slice(due_ns if woken_ns - due_ns > AWAY_NS else woken_ns)
            if not waiting.is_done():
                running.stop()
                running, waiting = waiting, running
            running.resume()
    finally:
        running.resume()
        waiting.resume()
