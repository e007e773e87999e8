"""Where a quantity jumps between two neighbouring sizes by more than the size explains.

What: for each pair of neighbouring sizes, the log of what was found over what was expected.
How: expected is the value at the smaller size plus the growth that the neighbouring pairs show,
with half as much again, since costs per byte grow where caches end; it never falls. A neighbour
that spans less than a quarter of the pair is not asked: its slope is mostly noise so far out.
Where no larger size shows the growth, growth in proportion to the size is expected: no fixed
and per-byte cost together can grow faster. Found below the smaller size's value is a step down.
Loss is expected to grow in proportion too, as it does where every fragment may be lost.
What it misses: at the last pair any step up that is less than the sizes' ratio; two steps beside
each other hide each other; sizes far apart hide what lies between.
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
    """Per pair of neighbouring sizes, shape (n − 1,) each: log(found/expected), log(found/before).

    `sizes` ascend, `values` are positive. The first above zero is a step up, the second below
    zero a step down. Raises ValueError for fewer than SIZES_MIN sizes, or where they do not ascend.
    """
    at, found = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if at.size < SIZES_MIN or at.size != found.size or (np.diff(at) <= 0).any():
        raise ValueError(
            f"sizes: {at.size} for {found.size} values; {SIZES_MIN} or more that ascend are allowed"
        )
    spans, rises = np.diff(at), np.diff(found)
    expected = found[1:].copy()
    for place in range(spans.size):
        growth = (at[place + 1] / max(at[place], 1.0) - 1.0) * found[place]
        if place + 1 < spans.size and NEIGHBOUR_SPAN_MIN * spans[place] <= spans[place + 1]:
            beside = [place + 1]
            if place and NEIGHBOUR_SPAN_MIN * spans[place] <= spans[place - 1]:
                beside.append(place - 1)
            slope = max(0.0, *(float(rises[one] / spans[one]) for one in beside))
            growth = min(growth, GROWTH_ALLOWED * slope * spans[place])
        expected[place] = found[place] + growth
    return np.log(found[1:] / expected), np.log(found[1:] / found[:-1])


def loss_excess(
    sizes: Sequence[float] | FloatArray, shares: Sequence[float] | FloatArray
) -> FloatArray:
    """Lost share at each larger size beyond what grows with the size, shape (n − 1,)."""
    at, lost = np.asarray(sizes, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    grown = np.minimum(1.0, lost[:-1] * at[1:] / np.maximum(at[:-1], 1.0))
    return np.asarray(lost[1:] - grown, dtype=np.float64)
