"""Two programs that work in turns on a core: each is stopped while the other one runs.

What a shared host takes comes and goes within milliseconds and seconds. Runs of a second after one
another meet different machines; slices of some milliseconds in turns meet the same one, and
whoever ends a slice on its core sees whether that core was there.
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
"""A slice takes some time between these, so that nothing periodic falls on one side's alone."""
AWAY_NS = 1_000_000
"""Who wakes later than this on the core of the slice had no core to wake on: the host had it."""


@dataclass
class Turn:
    """One of the two: a process group, and whether it has done what is timed.

    It runs when this begins. Times are ns of CLOCK_MONOTONIC.
    """

    group: int
    is_done: Callable[[], bool]
    slices: list[tuple[int, int]] = field(default_factory=list)
    """When it could run. Taken between the signals, so nobody's time is in none too long."""
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
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(self.group, number)

    def active_ns(self, begin_ns: int, end_ns: int) -> int:
        """How much of a time it could run."""
        return sum(max(0, min(to, end_ns) - max(since, begin_ns)) for since, to in self.slices)


def place(session: int, core: int) -> None:
    """Keeps a session's threads, and those that they start, on a core."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            if int(stat.read_text().rpartition(")")[2].split()[3]) != session:
                continue
            for task in stat.with_name("task").iterdir():
                os.sched_setaffinity(int(task.name), {core})


@contextlib.contextmanager
def on_cores(*cores: int) -> Iterator[None]:
    """Keeps this thread on these cores, and what it starts meanwhile."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def take_turns(first: Turn, second: Turn, timeout_s: float, seed: int) -> None:
    """Lets `first`, then `second`, and so on run until both are done.

    Who is left alone has its slices too, of which the core's absence is taken off.
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
