"""Define crash points. Tests use them to check that a campaign survives SIGKILL.

If `WATTWIRE_CRASH=VICTIM@POINT` is set, VICTIM (controller, agent, guard, node, a role, the name of
a process, emulator or ssh) is killed when this process first reaches POINT (ready, window, drain,
convert or commit). A role means the last node with this role, and ssh the connection to the last
host over ssh. If the variable is not set, each phase costs one dictionary look-up.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

VARIABLE = "WATTWIRE_CRASH"
POINTS = ("ready", "window", "drain", "convert", "commit")
_spent: set[str] = set()


def crash_point(point: str, victims: Mapping[str, int | None]) -> None:
    """Kill the selected victim if `point` is the selected crash point.

    `victims` maps the names of victims to process ids.
    """
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
