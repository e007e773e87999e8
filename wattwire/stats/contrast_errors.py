"""Estimate the variance of a contrast from the residuals of a block model.

What it computes: the variance of a contrast of treatment means and its degrees of freedom, without
the assumption that all treatments scatter equally.
How: a contrast is a weighted sum of the runs; the weights are its `influence`. If the runs of each
block are in random order, the errors of a block are exchangeable, however they depend on the order.
`of_treatments` therefore estimates a variance for each treatment and adds them, with the degrees of
freedom of Welch and Satterthwaite. If the levels of a factor are next to each other in each block,
the errors of neighbouring runs are dependent. `of_blocks` then uses only the scatter of the
contrast between blocks. With two treatments, both are the paired t interval.
What it misses: errors of different blocks that depend on each other, such as a drift that affects
only one treatment. A treatment without a residual of its own has the variance of all treatments.
The residuals of a treatment contain a share of its block's other errors, so small variances are
overestimated and large ones underestimated, by less the more treatments a block has.
Reference: Welch 1938, Biometrika 29:350; Satterthwaite 1946, Biometrics Bulletin 2:110; Yates 1939,
Supplement to JRSS 6:215 and Bailey 1981, Biometrika 68:647 (randomisation within blocks); Liang &
Zeger 1986, Biometrika 73:13 (variance from clusters). `bench/README.md` has the simulation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SHARE_MIN = 1e-6
"""Residual degrees of freedom below which a treatment has no variance of its own."""


def of_treatments(
    influence: FloatArray, residuals: FloatArray, shares: FloatArray, treatment_of_run: IntArray
) -> tuple[float, float]:
    """Return the variance of a contrast from a variance per treatment, and its degrees of freedom.

    All arrays have shape (runs,). `shares` are the shares of the errors that the residuals keep;
    their sum over the runs of a treatment are its degrees of freedom.
    """
    weights, squares, degrees = (
        np.bincount(treatment_of_run, weights=per_run)
        for per_run in (influence**2, residuals**2, shares)
    )
    own = degrees > SHARE_MIN
    pooled_degrees = float(degrees.sum())
    variances = np.full(degrees.shape, float(squares.sum()) / pooled_degrees)
    np.divide(squares, degrees, out=variances, where=own)
    parts = weights * variances
    total = float(parts.sum())
    if not total > 0:
        return 0.0, pooled_degrees
    uncertainty = float(np.sum(parts[own] ** 2 / degrees[own]))
    uncertainty += float(parts[~own].sum()) ** 2 / pooled_degrees
    # Rounding removes the error of the binary representation, so 5 degrees are not 5.000000000001.
    return total, round(total**2 / uncertainty, 9)


def of_blocks(
    influence: FloatArray, residuals: FloatArray, block_of_run: IntArray
) -> tuple[float, float]:
    """Return the variance of a contrast from its scatter between blocks, with degrees of freedom.

    All arrays have shape (runs,). With fewer than two blocks, the variance is NaN.
    """
    contributions = np.bincount(block_of_run, weights=influence * residuals)
    blocks = int(np.count_nonzero(np.bincount(block_of_run, weights=influence**2)))
    if blocks < 2:
        return float("nan"), 0.0
    return float(contributions @ contributions) * blocks / (blocks - 1), float(blocks - 1)
