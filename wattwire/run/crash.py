"""Define crash points, at which tests check that a campaign survives kill -9.

`WATTWIRE_CRASH=VICTIM@POINT` kills VICTIM (controller, agent, guard, node) with SIGKILL the first
time POINT (ready, window, drain, convert, commit) is reached in this process. If it is unset, the
cost is one dictionary look-up per phase.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

VARIABLE = "WATTWIRE_CRASH"
POINTS = ("ready", "window", "drain", "convert", "commit")
_spent: set[str] = set()


def crash_point(point: str, victims: Mapping[str, int | None]) -> None:
    """Kill the chosen victim if this is its point; `victims` maps names to process ids."""
    request = os.environ.get(VARIABLE)
    if not request or request in _spent:
        return
    victim, _, requested_point = request.partition("@")
    if requested_point != point:
        return
    pid = os.getpid() if victim == "controller" else victims.get(victim)
    if pid is not None:
        _spent.add(request)
        os.kill(pid, signal.SIGKILL)
