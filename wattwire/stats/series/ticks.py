"""Detect latencies that wait for the ticks of a period, such as those of a loop that sleeps.

What it detects: values that are slightly longer than a multiple of a given period.
How: a value is at a tick if it exceeds a multiple k ≥ 1 of the period by at most WIDTH of the
period. Of a density that is smooth over the period, a share of WIDTH lies there. At least SHARE_MIN
of all values must, in at least half of the runs. A sleep never ends early; EARLY allows for the
resolution of clocks.
What it misses: ticks that are followed by more work than WIDTH of the period; a minority of values
at ticks; the cause. Work that always takes that long has the same latency.
Reference: the same argument as for modes (Silverman, Density Estimation, 6.4), on the circle of
the period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

WIDTH = 0.15
EARLY = 0.005
SHARE_MIN = 0.8
VALUES_MIN = 20


@dataclass(frozen=True)
class Ticks:
    """`inside` of `total` values (lost ones included) at ticks of `period`, in `runs` runs.

    `counts` contains the number of values at each multiple that occurs, as (multiple, number).
    """

    period: float
    inside: int
    total: int
    counts: tuple[tuple[int, int], ...]
    runs: int


def ticks_of(runs: Sequence[FloatArray], period: float) -> Ticks | None:
    """Return the ticks of `runs`, or None if the values are not at multiples of `period`.

    Each run is a series (n,); lost messages are +inf. Raise ValueError unless period > 0.
    """
    if not period > 0:
        raise ValueError(f"period: found {period}; allowed: > 0")
    sizes = np.array([series.size for series in runs if series.size], dtype=np.int64)
    total = int(sizes.sum())
    if total < VALUES_MIN:
        return None
    multiples = _multiples(np.concatenate(runs), period)
    inside_by_run = np.add.reduceat(multiples > 0, np.cumsum(sizes) - sizes, dtype=np.int64)
    inside = int(inside_by_run.sum())
    runs_hit = np.count_nonzero(inside_by_run >= SHARE_MIN * sizes)
    if inside < SHARE_MIN * total or 2 * runs_hit < sizes.size:
        return None
    values, counts = np.unique(multiples, return_counts=True)
    pairs = tuple((int(k), int(n)) for k, n in zip(values, counts, strict=True) if k > 0)
    return Ticks(period, inside, total, pairs, sizes.size)


def _multiples(series: FloatArray, period: float) -> NDArray[np.int64]:
    """Return the multiple at whose tick each value is, or 0; shape (n,)."""
    ratios = np.where(np.isfinite(series), series, 0.0) / period
    nearest = np.floor(ratios + EARLY)
    return np.where(ratios - nearest <= WIDTH, nearest, 0).astype(np.int64)
