"""Steps of a quantity between two neighbouring sizes that the size does not explain.

What: for each pair of neighbouring sizes, the log of the measured over the expected value.
How: the expected value is the value at the smaller size plus the growth that the neighbouring
pairs show, with half as much again, since costs per byte grow where caches end; it never falls. A
neighbour that spans less than a quarter of the pair is ignored: extrapolated that far, its slope
is mostly noise. Where no larger size shows the growth, growth in proportion to the size is
expected: no fixed and per-byte cost together can grow faster. A measured value below the smaller
size's value is a step down. Loss is expected to grow in proportion too, as it does where every
fragment may be lost.
What it misses: at the last pair any step up that is less than the sizes' ratio; two adjacent steps
hide each other; sizes far apart hide any step between them.
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

    Each entry belongs to one pair of neighbouring sizes. `sizes` ascend, `values` are positive. The
    first above zero is a step up, the second below zero a step down. Raises ValueError for fewer
    than SIZES_MIN sizes, or where they do not ascend.
    """
    size_array, measured = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if (
        size_array.size < SIZES_MIN
        or size_array.size != measured.size
        or (np.diff(size_array) <= 0).any()
    ):
        raise ValueError(
            f"sizes: {size_array.size} for {measured.size} values; {SIZES_MIN} or more that ascend "
            "are allowed"
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
    """Return each larger size's lost share less the share expected from growth, shape (n − 1,)."""
    size_array, lost = np.asarray(sizes, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    expected = np.minimum(1.0, lost[:-1] * size_array[1:] / np.maximum(size_array[:-1], 1.0))
    return np.asarray(lost[1:] - expected, dtype=np.float64)
