"""Compare two groups of unpaired runs by the ratio of their geometric means.

What it computes: the ratio of the typical values of two groups, from one positive number per run.
How: Welch's t interval for the difference of the means of the logarithms. Variances and numbers of
runs may differ.
What it misses: every difference between the two occasions other than the intended difference. The
scatter within the groups contains no information about it. With two or three runs per group, the
interval is wide. For differences within blocks, see `paired` and `blocked`.
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
"""Minimum number of runs per group. A single run has no scatter, so its error is unknown."""


def welch_ratio(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | TooFew | NotComputable:
    """Return the ratio of the geometric means of `upper` and `lower`.

    The shapes are (runs,) and (other runs,). The values are positive and finite, in the same unit.
    Otherwise the result is `NotComputable`. See the module's documentation for the method.
    """
    groups = [np.asarray(values, dtype=np.float64) for values in (upper, lower)]
    smallest_size = min(group.size for group in groups)
    if smallest_size < RUNS_MIN:
        return TooFew(smallest_size, RUNS_MIN, "runs on the smaller side")
    all_values = np.concatenate(groups)
    unbounded = int(np.sum(np.isposinf(all_values)))
    if unbounded:
        return NotComputable(f"unbounded in {unbounded} of {all_values.size} runs (loss)")
    unusable = int(np.sum(~np.isfinite(all_values) | (all_values <= 0)))
    if unusable:
        return NotComputable(f"zero, negative or missing in {unusable} of {all_values.size} runs")
    test = welch_t(np.log(groups[0]), np.log(groups[1]), confidence)
    if isinstance(test, (TooFew, NotComputable)):
        return test
    if test.interval is None:
        return NotComputable("no interval, because the values are too large or too small")
    logs = test.interval
    with np.errstate(over="ignore"):  # with few, scattered runs, a limit may overflow
        ratio, low, high = np.exp([logs.estimate, logs.low, logs.high]).tolist()
    return replace(logs, estimate=ratio, low=low, high=high, method="Welch's t, log scale")


def welch_difference(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | TooFew | NotComputable:
    """Return the mean of `upper` minus the mean of `lower`, in their unit.

    The shapes are (runs,) and (other runs,). Use this for shares, because a share may be zero, and
    a ratio then has no meaning. Groups of fewer than RUNS_MIN runs, and two groups without scatter,
    are refused. The method is described in the module's documentation, but without logarithms.
    """
    test = welch_t(np.asarray(upper), np.asarray(lower), confidence)
    if isinstance(test, (TooFew, NotComputable)):
        return test
    if test.interval is None:
        return NotComputable("no interval, because the values are too large or too small")
    return replace(test.interval, method="Welch's t")
