"""Detect latencies that wait for the ticks of a period, such as those of a loop that sleeps.

What it detects: values that are slightly longer than a multiple of a given period.
How: a value is at a tick if it exceeds a multiple k ≥ 1 of the period by at most WIDTH of the
period. Of a density that is smooth over the period, a share of WIDTH is there. At least SHARE_MIN
of all values must be, in at least half of the runs. A sleep never ends early; EARLY allows for the
resolution of clocks.
What it misses: ticks that are followed by more work than WIDTH of the period; a minority of values
at ticks; the cause. Work that always takes that long has the same latency.
Reference: the same argument as for modes (Silverman, Density Estimation, 6.4), on the circle of
the period.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

WIDTH = 0.15
EARLY = 0.005
SHARE_MIN = 0.8
VALUES_MIN = 20
BLOCK_VALUES = 1 << 16


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
    runs = [series for series in runs if series.size]
    sizes = np.array([series.size for series in runs], dtype=np.int64)
    total = int(sizes.sum())
    if total < VALUES_MIN:
        return None
    by_run, inside = [], total
    for series in runs:
        counts_of_run = _counts(series, period)
        by_run.append(counts_of_run)
        inside -= series.size - counts_of_run.total()
        if inside < SHARE_MIN * total:  # of most campaigns, so after a part of their runs
            return None
    inside_by_run = np.array([counts.total() for counts in by_run])
    runs_hit = np.count_nonzero(inside_by_run >= SHARE_MIN * sizes)
    if 2 * runs_hit < sizes.size:
        return None
    counts: Counter[int] = Counter()
    for counts_of_run in by_run:
        counts.update(counts_of_run)
    return Ticks(period, inside, total, tuple(sorted(counts.items())), sizes.size)


def _counts(series: FloatArray, period: float) -> Counter[int]:
    """Return the number of values at the tick of each multiple ≥ 1.

    Blocks need little memory; all values of a run of 10⁷ at once would take five times their own.
    """
    counts: Counter[int] = Counter()
    for begin in range(0, series.size, BLOCK_VALUES):
        multiples = _multiples(series[begin : begin + BLOCK_VALUES], period)
        values, numbers = np.unique(multiples[multiples > 0], return_counts=True)
        counts.update(dict(zip(values.tolist(), numbers.tolist(), strict=True)))
    return counts


def _multiples(series: FloatArray, period: float) -> NDArray[np.int64]:
    """Return the multiple at whose tick each value is, or 0; shape (n,)."""
    ratios = np.where(np.isfinite(series), series, 0.0) / period
    nearest = np.floor(ratios + EARLY)
    return np.where(ratios - nearest <= WIDTH, nearest, 0).astype(np.int64)
