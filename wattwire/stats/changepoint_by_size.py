"""Detect steps of a quantity between neighbouring sizes beyond its growth with the size.

What it computes: the log ratio of the measured to the expected value, for each pair of neighbouring
sizes.
How: the expected value is the value at the smaller size plus 1.5 times the growth in the
neighbouring pairs, because the cost per byte increases beyond cache sizes. The expected value never
decreases. A neighbouring pair is ignored if it spans less than a quarter of the pair, because its
extrapolated slope is mostly noise. If no larger size determines the growth, the expected growth is
proportional to the size, because a fixed cost plus a cost per byte cannot grow faster. A measured
value below the value at the smaller size is a step down. The expected loss is also proportional to
the size, because every fragment may be lost.
What it misses: at the last pair, steps up that are smaller than the ratio of the sizes; adjacent
steps, which mask each other; steps between distant sizes.
Reference: secant slopes as in Press et al., Numerical Recipes, 3.3, used as a bound, not as a fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SIZES_MIN = 3
GROWTH_ALLOWED = 1.5
NEIGHBOUR_SPAN_MIN = 0.25


def step_logs(
    sizes: Sequence[float] | FloatArray, values: Sequence[float] | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log(value / expected) and log(value / previous value), shape (n − 1,) each.

    Each entry is for a pair of neighbouring sizes. The sizes are in ascending order, and the values
    are positive. A positive entry of the first array is a step up. A negative entry of the second
    array is a step down. Raise ValueError for fewer than SIZES_MIN sizes, or if the order is not
    ascending.
    """
    size_array, measured = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if (
        size_array.size < SIZES_MIN
        or size_array.size != measured.size
        or (np.diff(size_array) <= 0).any()
    ):
        raise ValueError(
            f"sizes: found {size_array.size} sizes for {measured.size} values; allowed: one "
            f"size per value, at least {SIZES_MIN} sizes, in ascending order"
        )
    spans, rises = np.diff(size_array), np.diff(measured)
    expected = measured[1:].copy()
    for pair in range(spans.size):
        growth = (size_array[pair + 1] / max(size_array[pair], 1.0) - 1.0) * measured[pair]
        if pair + 1 < spans.size and NEIGHBOUR_SPAN_MIN * spans[pair] <= spans[pair + 1]:
            neighbours = [pair + 1]
            if pair and NEIGHBOUR_SPAN_MIN * spans[pair] <= spans[pair - 1]:
                neighbours.append(pair - 1)
            slope = max(
                0.0, *(float(rises[neighbour] / spans[neighbour]) for neighbour in neighbours)
            )
            growth = min(growth, GROWTH_ALLOWED * slope * spans[pair])
        expected[pair] = measured[pair] + growth
    return np.log(measured[1:] / expected), np.log(measured[1:] / measured[:-1])


def loss_excess(
    sizes: Sequence[float] | FloatArray, shares: Sequence[float] | FloatArray
) -> FloatArray:
    """Return the lost share at each larger size minus the expected share, shape (n − 1,)."""
    size_array, lost = np.asarray(sizes, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    expected = np.minimum(1.0, lost[:-1] * size_array[1:] / np.maximum(size_array[:-1], 1.0))
    return np.asarray(lost[1:] - expected, dtype=np.float64)
