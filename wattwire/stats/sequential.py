"""May a campaign stop? By the width of its primary contrast's interval, never by its p.

What: after a whole block, whether every primary contrast is known well enough.
How: the t interval of the paired log ratios, one a block, at INNER_CONFIDENCE: looking again and
again costs coverage, and the inner level pays for it, so that the printed interval may be called
one of 95 %. From BLOCKS_MIN blocks on; target, least and most blocks are frozen before the first.
What it misses: contrasts other than the primary; below BLOCKS_MIN blocks only a fixed plan keeps
its level. Blocks that resemble their neighbours make the width look smaller than it is.
Reference: Chow & Robbins 1965, Annals of Mathematical Statistics 36:457 (fixed-width intervals);
Glynn & Whitt 1992, Annals of Applied Probability 2:180.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats as distributions

FloatArray = NDArray[np.float64]

CONFIDENCE = 0.95
INNER_CONFIDENCE = 0.96
BLOCKS_MIN = 10


@dataclass(frozen=True)
class Look:
    """One look: `width` is how far the widest contrast's interval reaches, as a share of it.

    A width of 0.05 says that the true ratio may be 1.05 times the estimate. It is infinite where a
    contrast has fewer than two blocks.
    """

    block_count: int
    width: float
    target: float
    reached: bool


def look(
    log_ratios: Sequence[Sequence[float] | FloatArray], target: float, blocks_min: int = BLOCKS_MIN
) -> Look:
    """Look at all primary contrasts, each with one log ratio a whole block, in any order.

    Raises ValueError for a target that is not positive or a `blocks_min` below BLOCKS_MIN.
    """
    if not target > 0:
        raise ValueError(f"target: {target} found, above 0 is allowed")
    if blocks_min < BLOCKS_MIN:
        raise ValueError(f"blocks_min: {blocks_min} found, at least {BLOCKS_MIN} is allowed")
    contrasts = [np.asarray(one, dtype=np.float64) for one in log_ratios]
    count = min((one.size for one in contrasts), default=0)
    widths = [float(half_width(one[None, :])[0]) for one in contrasts]
    width = float(np.expm1(max(widths, default=np.inf)))
    return Look(count, width, target, count >= blocks_min and width <= target)


def half_width(log_ratios: FloatArray) -> FloatArray:
    """Half the interval's length on the log scale, shape (series,), of (series, blocks)."""
    count = log_ratios.shape[1]
    if count < 2 or not np.isfinite(log_ratios).all():
        return np.full(log_ratios.shape[0], np.inf)
    quantile = float(distributions.t.ppf(0.5 + INNER_CONFIDENCE / 2, count - 1))
    return quantile * np.asarray(log_ratios.std(axis=1, ddof=1)) / np.sqrt(count)
