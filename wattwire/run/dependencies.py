"""List what a run depends on, who watches it, and what its end means at each point of the run.

Only the end of what a run measures is a result, because it may be an effect of the load. The rest
is the harness: without it, the numbers describe something else. Its end fails the attempt, which
names it and is repeated.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from wattwire.model.errors import WattwireError


class End(str, Enum):
    """What the end of a dependency means for the attempt."""

    FAILED = "failed"
    """The verdict is failed, and the attempt is repeated."""
    FROM_OUTSIDE = "failed if ended from outside"
    """As FAILED if a signal from outside ended it; otherwise it is a result, as for RESULT."""
    RESULT = "result"
    """The outcome is died or timed_out, which answers use."""
    RESUMED = "resumed"
    """`--resume` removes what is left and repeats the attempt."""


BEFORE_GO, WINDOW, DRAIN = "ready", "window", "drain"
"""Points of a run, with the names of `crash.POINTS`."""
POINTS = (BEFORE_GO, WINDOW, DRAIN)


@dataclass(frozen=True)
class Dependency:
    """A kind of thing that a run depends on."""

    kind: str
    watched_by: str
    before_go: End
    in_window: End
    in_drain: End
    replaced: str
    """What starts again before the next attempt."""

    def end_at(self, point: str) -> End:
        """Return the meaning of its end at a point."""
        ends = (self.before_go, self.in_window, self.in_drain)
        return dict(zip(POINTS, ends, strict=True))[point]


def _harness(kind: str, watched_by: str, replaced: str) -> Dependency:
    return Dependency(kind, watched_by, End.FAILED, End.FAILED, End.FAILED, replaced)


_OUTSIDE, _RESULT, _RESUMED = 3 * (End.FROM_OUTSIDE,), 3 * (End.RESULT,), 3 * (End.RESUMED,)
_TABLE = (
    Dependency("controller", "the journal: an attempt that is begun", *_RESUMED, "all hosts"),
    _harness("agent", "its pipe ends, or a request has no reply in time", "all hosts"),
    _harness("ssh", "as agent: the connection is its pipe", "all hosts"),
    _harness("namespace", "as agent: it belongs to the process of its agent", "all hosts"),
    _harness("guard", "its agent: the event guard_lost", "the processes of the run"),
    _harness("emulator", "its process, at each point, and its exit code", "the network"),
    _harness("switch", "its process, at each point", "all hosts"),
    _harness("device", "the agent of its host: address and state, at each point", "the network"),
    _harness("link", "the queueing disciplines of the kernel, after the run", "the network"),
    _harness("disk", "the free bytes of each host, at each point", "nothing: free disk space"),
    _harness("meter", "its agent: at the start and the end of a sampling", "nothing: the meter"),
    _harness("probe", "its agent: the event exit, before wattwire stops it", "the probe"),
    Dependency("service", "its agent: the event exit", *_OUTSIDE, "the processes of the run"),
    Dependency("bridge", "its agent: the event exit", *_OUTSIDE, "the processes of the run"),
    Dependency("node", "its agent: the event exit", *_RESULT, "the processes of the run"),
)
DEPENDENCIES = {dependency.kind: dependency for dependency in _TABLE}
OUTSIDE_SIGNALS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that a program does not send to itself. The kernel sends SIGKILL without free memory."""


class DependencyLostError(WattwireError):
    """Something that the run depends on has ended. The attempt failed, and is repeated."""


def require(point: str, lost: Mapping[str, str]) -> None:
    """Raise DependencyLostError if a dependency has ended whose end fails the attempt.

    `lost` maps kinds to sentences that name what ended.
    """
    texts = [text for kind, text in lost.items() if DEPENDENCIES[kind].end_at(point) is End.FAILED]
    if texts:
        raise DependencyLostError("; ".join(texts))


def fails(kind: str, point: str, exit_status: Mapping[str, Any], out_of_memory: bool) -> bool:
    """Return whether the end of a process of this kind fails the attempt.

    With `out_of_memory`, the kernel ended processes in the run, which may be an effect of the load.
    """
    end = DEPENDENCIES[kind].end_at(point)
    from_outside = exit_status.get("signal") in OUTSIDE_SIGNALS and not out_of_memory
    return end is End.FAILED or (end is End.FROM_OUTSIDE and from_outside)
