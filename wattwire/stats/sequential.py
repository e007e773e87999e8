"""Decide when a campaign stops, by the width of its primary intervals and never by p.

What it computes: after each complete block, whether a primary contrast is precise enough. A precise
contrast is dropped from the remaining blocks, while both sides of the others continue in each
block. The campaign ends when the last contrast is precise enough.
How: the t interval of the paired log ratios, one per block, at INNER_CONFIDENCE. Repeated looks
reduce the coverage. The higher inner level compensates for this, so that the reported interval
covers 95 %. The rule applies from BLOCKS_MIN blocks. The target and the smallest and largest
numbers of blocks are fixed before the first block.
What it misses: contrasts other than the primary contrasts. With fewer than BLOCKS_MIN blocks, only
a fixed plan has the nominal coverage. Correlation of neighbouring blocks makes the width appear
smaller than it is.
Reference: Chow & Robbins 1965, Annals of Mathematical Statistics 36:457 (fixed-width intervals);
Glynn & Whitt 1992, Annals of Applied Probability 2:180.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]

CONFIDENCE = 0.95
INNER_CONFIDENCE = 0.96
BLOCKS_MIN = 10


@dataclass(frozen=True)
class Look:
    """One look at a contrast; `width` is half the width of its interval, as a share of the ratio.

    A width of 0.05 means that the true ratio may be 1.05 times the estimate. The width is infinite
    if the contrast has fewer than two blocks.
    """

    block_count: int
    width: float
    target: float
    reached: bool


def look(
    log_ratios: Sequence[float] | FloatArray, target: float, blocks_min: int = BLOCKS_MIN
) -> Look:
    """Return a look at one contrast, from one log ratio per complete block, in any order.

    Raise ValueError if `target` is not positive or `blocks_min` is below BLOCKS_MIN.
    """
    if not target > 0:
        raise ValueError(f"target: found {target}; allowed: a number above 0")
    if blocks_min < BLOCKS_MIN:
        raise ValueError(f"blocks_min: found {blocks_min}; allowed: at least {BLOCKS_MIN}")
    values = np.asarray(log_ratios, dtype=np.float64)
    width = float(np.expm1(half_width(values[None, :])[0]))
    return Look(values.size, width, target, values.size >= blocks_min and width <= target)


def half_width(log_ratios: FloatArray) -> FloatArray:
    """Return half the log-scale width of each interval, shape (series,), from (series, blocks)."""
    count = log_ratios.shape[1]
    if count < 2 or not np.isfinite(log_ratios).all():
        return np.full(log_ratios.shape[0], np.inf)
    quantile = float(special.stdtrit(count - 1, 0.5 + INNER_CONFIDENCE / 2))
    return quantile * np.asarray(log_ratios.std(axis=1, ddof=1)) / np.sqrt(count)
