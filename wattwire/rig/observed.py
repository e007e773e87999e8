"""Store the durations of builds, node starts and calls on this machine, in a file per cell.

Only forecasts use these observations. Measurements and verdicts do not. The files are in the user's
build cache. Without them, forecasts have no observations.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wattwire.rig import cache

FOLDER = "observed"
KEPT = 30
"""Number of the latest runs and builds of a cell that are stored."""


@dataclass(frozen=True)
class ObservedRun:
    """A run of a cell: its number of nodes, and its time (s) in addition to the plan.

    `overhead_s` is the time to start, match and end nodes and to convert their records. `call_s` is
    the mean duration of a call in a closed loop, or None for an open loop. `reached_hz` is the rate
    of the fastest sender of a run in open loop whose senders did not reach the offered rate, or
    None if they reached it.
    """

    nodes: int
    overhead_s: float
    call_s: float | None = None
    reached_hz: float | None = None


@dataclass(frozen=True)
class Observed:
    """Observations of a cell or of a middleware's environment; empty by default."""

    build_s: tuple[float, ...] = ()
    runs: tuple[ObservedRun, ...] = ()
    ready: dict[str, Any] = field(default_factory=dict)
    """`library` and `guarantee` of the latest READY line, with the day as `seen`."""

    def typical_build_s(self) -> float | None:
        """Return the median duration (s) of a build, or None if there are no observations."""
        return statistics.median(self.build_s) if self.build_s else None

    def overhead_s(self, nodes: int, base_s: float, node_s: float = 0.0) -> float | None:
        """Return the median seconds of a run with `nodes` nodes in addition to the plan.

        If no run had this number of nodes, the median for the nearest number is scaled, except for
        `base_s`, which does not depend on the number of nodes. Each node beyond the nearest number
        adds at least `node_s`. The result is None without runs.
        """
        if not self.runs:
            return None
        nearest = min((run.nodes for run in self.runs), key=lambda n: (abs(n - nodes), n))
        median_s = statistics.median(run.overhead_s for run in self.runs if run.nodes == nearest)
        scaled_s = median_s
        if nearest != nodes and median_s > base_s:
            scaled_s = base_s + (median_s - base_s) * nodes / nearest
        return max(scaled_s, median_s + max(0, nodes - nearest) * node_s)

    def call_s(self, nodes: int) -> float | None:
        """Return the median duration (s) of a call in a closed loop.

        Runs with the nearest number of nodes are used. The result is None without such runs.
        """
        closed_runs = [run for run in self.runs if run.call_s is not None]
        if not closed_runs:
            return None
        nearest = min((run.nodes for run in closed_runs), key=lambda n: (abs(n - nodes), n))
        return statistics.median(run.call_s or 0.0 for run in closed_runs if run.nodes == nearest)

    def reached_hz(self, nodes: int) -> float | None:
        """Return the highest rate of a sender in runs that did not reach their offered rate.

        The runs are those with the most nodes of at most `nodes`: among more nodes, a sender is not
        faster. The result is None without such runs.
        """
        late = [run for run in self.runs if run.reached_hz is not None and run.nodes <= nodes]
        most = max((run.nodes for run in late), default=0)
        return max((run.reached_hz or 0.0 for run in late if run.nodes == most), default=None)


def observed(name: str) -> Observed:
    """Return the observations of a cell or environment; empty if the file is damaged."""
    try:
        document = json.loads(_path(name).read_text(encoding="utf-8"))
        return Observed(
            tuple(_positive(seconds) for seconds in document["build_s"]),
            tuple(_run(table) for table in document["runs"]),
            dict(document["ready"]),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Observed()


def note_build(name: str, seconds: float) -> None:
    """Add the duration (s) of a build."""
    earlier = observed(name)
    _write(name, Observed((*earlier.build_s, seconds)[-KEPT:], earlier.runs, earlier.ready))


def note_run(name: str, run: ObservedRun, ready: Mapping[str, Any]) -> None:
    """Add a run. `ready` replaces the stored value unless it is empty."""
    earlier = observed(name)
    _write(
        name, Observed(earlier.build_s, (*earlier.runs, run)[-KEPT:], dict(ready) or earlier.ready)
    )


def _path(name: str) -> Path:
    return cache.folder() / FOLDER / f"{name.replace('/', '+')}.json"


def _run(table: Mapping[str, Any]) -> ObservedRun:
    call_s, reached_hz = table.get("call_s"), table.get("reached_hz")
    return ObservedRun(
        int(table["nodes"]),
        _positive(table["overhead_s"]),
        None if call_s is None else _positive(call_s),
        None if reached_hz is None else _positive(reached_hz),
    )


def _positive(value: Any) -> float:
    """Return a value in s or Hz as a number. Raise ValueError if it is not plausible."""
    number = float(value)
    if not 0.0 <= number < 1e9:
        raise ValueError(f"found {value!r}; allowed: a number of 0 to 10⁹")
    return number


def _write(name: str, observations: Observed) -> None:
    """Replace the file atomically. Nothing is stored if the cache is not writable."""
    path = _path(name)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, delete=False
        ) as file:
            json.dump(asdict(observations), file)
        os.replace(file.name, path)
