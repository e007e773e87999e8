"""Determine the warm-up of a cell, in calls, from its settling runs.

What it computes: the smallest of STEPS after which the median latency between any two neighbouring
EDGES is within TOLERANCE of the run's last quarter, as the median over the runs. A cell is not
settled if the last interval before that quarter differs by more, in the same direction in every
run.
How: medians of logarithms, so that single slow calls have no influence. Each difference is reduced
by its chance variation: NOISES standard deviations of medians over the same number of calls in the
last quarter, which include the dependence of neighbours. The result is one of a few round numbers,
so that it is repeatable. Changepoints are used only for classification.
What it misses: cells that settle after three quarters of a settling run, or whose mean changes but
not their median. If the machine becomes slower or faster during every run, the cell appears to
settle.
Reference: Barrett et al. 2017, Proc. ACM Program. Lang. 1:52 (determining the warm-up from data);
Georges, Buytaert & Eeckhout 2007, OOPSLA (start-up and steady state distinguished, over several
invocations).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wattwire.model.warm_up import STEPS
from wattwire.stats.series.warm_up import AGREEING_SHARE, POINTS_MIN

FloatArray = NDArray[np.float64]

EDGES = (10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)
TOLERANCE = 0.10
LAST_SHARE = 0.25
NOISES = 2.0
PARTS_MIN = 10
"""Minimum number of medians for an estimate of the standard deviation."""
STRETCH_MIN = 5
"""Minimum number of calls for a median."""


@dataclass(frozen=True)
class Settled:
    """Result of the settling runs of one cell.

    `calls` is the length of the warm-up, which is one of STEPS. It is the last of STEPS if the cell
    has not `settled`, and None if the runs are too short.
    """

    calls: int | None
    settled: bool


def settle(runs: Sequence[Sequence[float] | FloatArray]) -> Settled:
    """Return the warm-up that a cell needs, from each run's latencies, shape (calls,).

    The latencies are in time order. A call without a latency is NaN.
    """
    offsets = [by_edge for by_edge in map(_offsets, runs) if by_edge]
    if not offsets:
        return Settled(None, False)
    limit = math.log1p(TOLERANCE)
    needed = 0
    for edge, following in zip(EDGES, (*EDGES[1:], EDGES[-1]), strict=True):
        edge_offsets = [run[edge] for run in offsets if edge in run]
        if edge_offsets and abs(float(np.median(edge_offsets))) > limit:
            needed = following
    calls = next(step for step in STEPS if step >= needed)
    last_offsets = [run[max(run)] for run in offsets]
    unsettled = all(offset > limit for offset in last_offsets) or all(
        offset < -limit for offset in last_offsets
    )
    # An unsettled cell needs an unknown number of calls, so it gets the longest warm-up.
    return Settled(STEPS[-1] if unsettled else calls, not unsettled)


def drifts(windows: Sequence[FloatArray]) -> bool:
    """Return whether a cell's latency still increases or decreases within its windows.

    Each window has shape (calls,), in time order. The latency drifts if the median of the first
    half of a window differs from the median of its last quarter by more than TOLERANCE, in the same
    direction in AGREEING_SHARE of the windows. Occasional changes of the machine's speed, which are
    not a warm-up, shift windows in both directions.
    """
    limit = math.log1p(TOLERANCE)
    offsets = []
    for window in windows:
        logs = np.log(window[np.isfinite(window) & (window > 0)])
        first, last = logs[: logs.size // 2], logs[int(logs.size * (1.0 - LAST_SHARE)) :]
        offsets.append(_median(first) - _median(last))
    if not offsets:
        return False
    falls, rises = (sum(sign * offset > limit for offset in offsets) for sign in (1, -1))
    return max(falls, rises) >= AGREEING_SHARE * len(offsets)


def _offsets(run: Sequence[float] | FloatArray) -> dict[int, float]:
    """Return, by edge, the log median up to the next edge minus the median of the last quarter.

    Each offset is reduced by its chance variation, but not beyond 0. The result is empty for a run
    that is too short.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        data = np.log(np.asarray(run, dtype=np.float64))
    data[~np.isfinite(data)] = np.nan
    end = int(data.size * (1.0 - LAST_SHARE))
    level = _median(data[end:])
    if np.count_nonzero(~np.isnan(data)) < POINTS_MIN or math.isnan(level):
        return {}
    offsets = {}
    for edge, following in zip(EDGES, (*EDGES[1:], end), strict=True):
        stretch = data[edge : min(following, end)]
        offset = _median(stretch) - level
        if not math.isnan(offset):
            remainder = abs(offset) - NOISES * _noise(data[end:], stretch.size)
            offsets[edge] = math.copysign(max(0.0, remainder), offset)
    return offsets


def _noise(data: FloatArray, size: int) -> float:
    """Return the standard deviation of medians of `size` neighbours, estimated from `data`."""
    width = max(1, min(size, data.size // PARTS_MIN))
    stretches = data[: data.size - data.size % width].reshape(-1, width)
    medians = np.array(
        [_median(stretch) if width >= STRETCH_MIN else stretch[0] for stretch in stretches]
    )
    # Use differences of successive medians, so that a drift of the level does not count as noise.
    steps = np.abs(np.diff(medians[~np.isnan(medians)]))
    spread = 1.4826 * float(np.median(steps)) / math.sqrt(2.0) if steps.size else 0.0
    return spread * math.sqrt(width / size)


def _median(data: FloatArray) -> float:
    present = data[~np.isnan(data)]
    return float(np.median(present)) if present.size >= STRETCH_MIN else math.nan
