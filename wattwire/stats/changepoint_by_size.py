"""Steps of a quantity between neighbouring sizes that are not explained by the size.

What: for each pair of neighbouring sizes, the log ratio of the measured to the expected value.
How: the expected value is the value at the smaller size plus 1.5 times the growth observed in the
neighbouring pairs, since costs per byte grow beyond cache sizes; it never falls. A neighbouring
pair that spans less than a quarter of the pair is ignored: extrapolated that far, its slope is
mostly noise. If no larger size shows the growth, growth in proportion to the size is expected,
because a fixed cost plus a cost per byte cannot grow faster. A measured value below the smaller
size's value is a step down. Loss is expected to grow in proportion too, as it does where every
fragment may be lost.
What it misses: at the last pair, any step up smaller than the ratio of the sizes; two adjacent
steps, which mask each other; steps between sizes that are far apart.
Reference: secant slopes as in Press et al., Numerical Recipes, 3.3; a bound, not a fit.
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
    """Return log(value/expected) and log(value/previous value), shape (n − 1,) each.

    Each entry belongs to one pair of neighbouring sizes. `sizes` ascend, `values` are positive. A
    positive first value is a step up; a negative second value is a step down. Raises ValueError for
    fewer than SIZES_MIN sizes, or if they do not ascend.
    """
    size_array, measured = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if (
        size_array.size < SIZES_MIN
        or size_array.size != measured.size
        or (np.diff(size_array) <= 0).any()
    ):
        raise ValueError(
            f"sizes: {size_array.size} for {measured.size} values; allowed: {SIZES_MIN} or "
            "more, in ascending order"
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
    """Return each larger size's lost share minus the share expected from growth, shape (n − 1,)."""
    size_array, lost = np.asarray(sizes, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    expected = np.minimum(1.0, lost[:-1] * size_array[1:] / np.maximum(size_array[:-1], 1.0))
    return np.asarray(lost[1:] - expected, dtype=np.float64)
