"""Where a quantity jumps between two neighbouring sizes by more than the size explains.

What: for each pair of neighbouring sizes, the log of what was found over what was expected.
How: expected is the value at the smaller size plus the growth that the neighbouring pairs show,
with half as much again, since costs per byte grow where caches end; it never falls. Found below
that smaller value counts as a step down. Loss is expected to grow in proportion to the size, as
it does where every fragment may be lost.
What it misses: a step at the first or last pair has one neighbour to compare with; two steps
beside each other hide each other; sizes far apart hide what lies between.
Reference: secant slopes as in Press et al., Numerical Recipes, 3.3; a bound, not a fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SIZES_MIN = 3
GROWTH_ALLOWED = 1.5


def step_logs(
    sizes: Sequence[float] | FloatArray, values: Sequence[float] | FloatArray
) -> FloatArray:
    """log(found/expected) of each pair of neighbouring sizes, shape (n − 1,).

    `sizes` ascend, `values` are positive; above zero: a step up, below: down, 0: explained.
    Raises ValueError for fewer than SIZES_MIN sizes, or for sizes that do not ascend.
    """
    at, found = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if at.size < SIZES_MIN or at.size != found.size or (np.diff(at) <= 0).any():
        raise ValueError(
            f"sizes: {at.size} for {found.size} values; {SIZES_MIN} or more that ascend are allowed"
        )
    slopes = np.diff(found) / np.diff(at)
    logs = np.zeros(slopes.size)
    for place in range(slopes.size):
        beside = slopes[max(0, place - 1) : place + 2].tolist()
        beside.pop(place - max(0, place - 1))
        growth = GROWTH_ALLOWED * max(0.0, *beside) * (at[place + 1] - at[place])
        over = np.log(found[place + 1] / (found[place] + growth))
        under = np.log(found[place + 1] / found[place])
        logs[place] = over if over > 0 else min(0.0, under)
    return logs


def loss_excess(
    sizes: Sequence[float] | FloatArray, shares: Sequence[float] | FloatArray
) -> FloatArray:
    """Lost share at each larger size beyond what grows with the size, shape (n − 1,)."""
    at, lost = np.asarray(sizes, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    grown = np.minimum(1.0, lost[:-1] * at[1:] / np.maximum(at[:-1], 1.0))
    return np.asarray(lost[1:] - grown, dtype=np.float64)
