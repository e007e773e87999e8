"""Move this process off CPUs, for the duration of a run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator


@contextlib.contextmanager
def staying_off(cpus: Collection[int]) -> Iterator[None]:
    """Keep all threads of this process off these CPUs, unless no other CPU is left."""
    allowed = os.sched_getaffinity(0)
    rest = allowed - {*cpus}
    if not cpus or not rest:
        yield
        return
    _restrict(rest)
    try:
        yield
    finally:
        _restrict(allowed)


def _restrict(cpus: Collection[int]) -> None:
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # the thread has ended
            os.sched_setaffinity(int(task), cpus)
