"""After how many calls does a cell settle? The warm-up's number, from some settling runs of it.

What: the smallest of STEPS from which on the median latency of every stretch between two of EDGES
is within TOLERANCE of the run's last quarter, in the median over the runs. A cell has not settled
where the last stretch before that quarter still differs by more than that, in one direction, in
every run.
How: medians of logarithms, so that single slow calls move nothing. From each difference goes what
chance makes of so few calls: NOISES standard deviations of medians over as many calls in the last
quarter, neighbours' dependence included. The number is one of a few round ones, so that a repeat
finds the same. No changepoint decides it: those only classify.
What it misses: what settles later than three quarters of a settling run, or changes the mean and
not the median; a machine that becomes slower or faster while all the runs go on looks like a cell
that settles.
Reference: Barrett et al. 2017, Proc. ACM Program. Lang. 1:52 (warm-up is to be shown, not guessed);
Georges, Buytaert & Eeckhout 2007, OOPSLA (start-up and steady state told apart, over several
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
"""Fewest medians that have a standard deviation worth the name."""
STRETCH_MIN = 5
"""Fewest calls whose median says anything."""


@dataclass(frozen=True)
class Settled:
    """What settling runs say of one cell.

    `calls` of a warm-up, one of STEPS; the last of them where it had not `settled` by the end;
    None where the runs are too short to tell.
    """

    calls: int | None
    settled: bool


def settle(runs: Sequence[Sequence[float] | FloatArray]) -> Settled:
    """The warm-up that a cell needs, from each run's latency, call by call in order of time.

    A call without a latency is NaN in its place.
    """
    offsets = [found for found in map(_offsets, runs) if found]
    if not offsets:
        return Settled(None, False)
    limit = math.log1p(TOLERANCE)
    needed = 0
    for edge, following in zip(EDGES, (*EDGES[1:], EDGES[-1]), strict=True):
        known = [run[edge] for run in offsets if edge in run]
        if known and abs(float(np.median(known))) > limit:
            needed = following
    calls = next(step for step in STEPS if step >= needed)
    last = [run[max(run)] for run in offsets]
    apart = all(offset > limit for offset in last) or all(offset < -limit for offset in last)
    # How many more it would take is not known: as many as there may be.
    return Settled(STEPS[-1] if apart else calls, not apart)


def drifts(windows: Sequence[FloatArray]) -> bool:
    """Whether a cell's latency still falls, or rises, in its windows, each (calls,) in time order.

    The median of a window's first half differs by more than TOLERANCE from that of its last
    quarter, in one direction, in AGREEING_SHARE of the windows. A machine whose speed changes now
    and then moves windows either way, which is no warm-up.
    """
    limit = math.log1p(TOLERANCE)
    offsets = []
    for window in windows:
        known = np.log(window[np.isfinite(window) & (window > 0)])
        first, last = known[: known.size // 2], known[int(known.size * (1.0 - LAST_SHARE)) :]
        offsets.append(_median(first) - _median(last))
    if not offsets:
        return False
    falls, rises = (sum(sign * one > limit for one in offsets) for sign in (1, -1))
    return max(falls, rises) >= AGREEING_SHARE * len(offsets)


def _offsets(run: Sequence[float] | FloatArray) -> dict[int, float]:
    """Edge → how far the logarithm's median up to the next edge lies from the last quarter's.

    Chance is taken off; 0 where no more than that is left. Empty for a run that is too short.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        data = np.log(np.asarray(run, dtype=np.float64))
    data[~np.isfinite(data)] = np.nan
    end = int(data.size * (1.0 - LAST_SHARE))
    level = _median(data[end:])
    if np.count_nonzero(~np.isnan(data)) < POINTS_MIN or math.isnan(level):
        return {}
    found = {}
    for edge, following in zip(EDGES, (*EDGES[1:], end), strict=True):
        stretch = data[edge : min(following, end)]
        offset = _median(stretch) - level
        if not math.isnan(offset):
            left = abs(offset) - NOISES * _noise(data[end:], stretch.size)
            found[edge] = math.copysign(max(0.0, left), offset)
    return found


def _noise(data: FloatArray, size: int) -> float:
    """Standard deviation of medians over `size` neighbours, from those of `data`."""
    taken = max(1, min(size, data.size // PARTS_MIN))
    parts = data[: data.size - data.size % taken].reshape(-1, taken)
    medians = np.array([_median(part) if taken >= STRETCH_MIN else part[0] for part in parts])
    # From one to the next, so that a level which still drifts is not taken for noise.
    steps = np.abs(np.diff(medians[~np.isnan(medians)]))
    spread = 1.4826 * float(np.median(steps)) / math.sqrt(2.0) if steps.size else 0.0
    return spread * math.sqrt(taken / size)


def _median(data: FloatArray) -> float:
    known = data[~np.isnan(data)]
    return float(np.median(known)) if known.size >= STRETCH_MIN else math.nan
