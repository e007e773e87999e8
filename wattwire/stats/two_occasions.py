"""Two groups of runs that were not made side by side: the ratio of their geometric means.

What: how many times the typical value of one group is that of the other, one positive number a run.
How: Welch's t interval for the difference of the means of the logarithms; neither equal variances
nor equal numbers of runs are assumed.
What it misses: everything that differs between the two occasions besides what was meant to
differ. The scatter inside each group says nothing about that. With two or three runs a group the
interval is wide, and rightly so. Differences inside blocks: see `paired` and `blocked`.
Reference: Welch 1947, Biometrika 34:28; Satterthwaite 1946, Biometrics Bulletin 2:110.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wattwire.stats.paper.means import welch_t
from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]
RUNS_MIN = 2
"""In each group; from one run there is no scatter to judge by."""


def welch_ratio(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | TooFew | NotComputable:
    """Geometric mean of `upper` over that of `lower`, shapes (runs,) and (other runs,).

    Both positive and finite, in the same unit; otherwise `NotComputable` says how many are not.
    What, How, What it misses, Reference: see above.
    """
    groups = [np.asarray(values, dtype=np.float64) for values in (upper, lower)]
    fewest = min(group.size for group in groups)
    if fewest < RUNS_MIN:
        return TooFew(fewest, RUNS_MIN, "runs on either side")
    everything = np.concatenate(groups)
    unbounded = int(np.sum(np.isposinf(everything)))
    if unbounded:
        return NotComputable(f"unbounded in {unbounded} of {everything.size} runs (loss)")
    bad = int(np.sum(~np.isfinite(everything) | (everything <= 0)))
    if bad:
        return NotComputable(f"zero, negative or missing in {bad} of {everything.size} runs")
    found = welch_t(np.log(groups[0]), np.log(groups[1]), confidence)
    if isinstance(found, (TooFew, NotComputable)):
        return found
    if found.interval is None:
        return NotComputable("no interval: the values are too large or too small to be told apart")
    logs = found.interval
    with np.errstate(over="ignore"):  # few, scattered runs: a limit may lie beyond all numbers
        ratio, low, high = np.exp([logs.estimate, logs.low, logs.high]).tolist()
    return replace(logs, estimate=ratio, low=low, high=high, method="Welch's t, log scale")


def welch_difference(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | TooFew | NotComputable:
    """Mean of `upper` minus that of `lower`, shapes (runs,) and (other runs,), in their unit.

    For shares, of which zero is one: a ratio to none says nothing. Refuses groups of fewer than
    RUNS_MIN runs, and two without any scatter.
    What, How, What it misses, Reference: see above, without logarithms.
    """
    found = welch_t(np.asarray(upper), np.asarray(lower), confidence)
    if isinstance(found, (TooFew, NotComputable)):
        return found
    if found.interval is None:
        return NotComputable("no interval: the values are too large or too small to be told apart")
    return replace(found.interval, method="Welch's t")
