"""Find the amount of work from which it takes less time to hand it over than to do it locally.

What it computes: the smallest number of units k ≥ 1 at which the round trip of a message with k
units, plus the worker's time for them, is at most the local time for them.
How: the round trips of one block are connected by lines over k, and the time saved per unit is
constant, so the first crossing has a closed form. Each block gives one crossing. The interval is a
t interval of their geometric mean, because blocks are the replicates.
What it misses: round trips between the measured sizes that deviate from the line, such as a step,
and crossings above the largest measured size. If some blocks have no crossing, no interval has a
known coverage, so the result is the range of the other blocks.
Reference: Draper & Smith, Applied Regression Analysis, ch. 9 (weighted least squares); the t
interval of logarithms is that of `blocked.geometric_mean`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wattwire.stats.blocked import geometric_mean
from wattwire.stats.results import Interval

FloatArray = NDArray[np.float64]
BLOCKS_MIN = 3


@dataclass(frozen=True)
class NeverUpTo:
    """No block has a crossing up to `units`."""

    units: float
    blocks: int


@dataclass(frozen=True)
class InSomeBlocks:
    """Only `crossed` of `blocks` blocks have a crossing, at `low` to `high` units."""

    low: float
    high: float
    crossed: int
    blocks: int
    units: float


@dataclass(frozen=True)
class Without:
    """The geometric mean of the crossings of too few blocks for an interval."""

    estimate: float
    blocks: int


BreakEven = Interval | NeverUpTo | InSomeBlocks | Without


def crossing(units: FloatArray, round_trips: FloatArray, saved_per_unit: float) -> float:
    """Return the smallest k ≥ 1 with `round_trips(k)` ≤ `saved_per_unit` · k; inf if there is none.

    `units` is increasing, of shape (sizes,). `round_trips` has the same shape, in the unit of
    `saved_per_unit`. Between two sizes, a line connects the round trips. Sizes below 1 only support
    this line. Without a size up to 1, the search begins at the first size.
    """
    first = max(1.0, float(units[0]))
    ks = np.concatenate([[first], units[units > first]])
    excess = np.interp(ks, units, round_trips) - saved_per_unit * ks
    reached = np.flatnonzero(excess <= 0)
    if not reached.size:
        return math.inf
    at = int(reached[0])
    if at == 0:
        return first
    share = excess[at - 1] / (excess[at - 1] - excess[at])
    return float(ks[at - 1] + share * (ks[at] - ks[at - 1]))


def unit_time(units: FloatArray, idle: FloatArray, busy: FloatArray) -> float:
    """Return the time that one unit adds to a round trip, in the unit of the round trips.

    The three arrays have the shape (sizes,). The result is the least-squares slope through the
    origin of `busy` − `idle` over the units. The weights assume that the error of a round trip is
    proportional to it, so that the variance of the difference is the sum of both squares.
    """
    weights = 1.0 / (np.square(idle) + np.square(busy))
    return float(np.sum(weights * units * (busy - idle)) / np.sum(weights * np.square(units)))


def break_even(crossings: FloatArray, units_max: float) -> BreakEven:
    """Return the break-even from the crossings of all blocks, shape (blocks,), with an interval.

    `units_max` is the largest measured number of units. At least one block is required. The limits
    are at least 1, because no break-even is below one unit.
    """
    reached = crossings[np.isfinite(crossings)]
    if not reached.size:
        return NeverUpTo(units_max, crossings.size)
    if reached.size < crossings.size:
        low, high = float(reached.min()), float(reached.max())
        return InSomeBlocks(low, high, int(reached.size), int(crossings.size), units_max)
    interval = geometric_mean(crossings)
    if isinstance(interval, Interval):
        return replace(interval, low=max(1.0, interval.low), high=max(1.0, interval.high))
    return Without(float(np.exp(np.mean(np.log(crossings)))), int(crossings.size))
