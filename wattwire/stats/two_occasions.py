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
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from wattwire.stats.groups import (
    FloatArray,
    Unanswered,
    Values,
    arrays,
    no_scatter,
    refuse_groups,
    scatters,
    standardised,
    unit,
)
from wattwire.stats.results import Interval, NotComputable, TooFew

RUNS_MIN = 2
"""Minimum number of runs per group. A single run has no scatter, so its error is unknown."""


@dataclass(frozen=True)
class TwoMeans:
    """The difference of two means over its standard error, and its degrees of freedom.

    `interval` is the difference in the data's unit; None if it or its limits are infinite.
    """

    statistic: float
    degrees: float
    counts: tuple[int, int]
    interval: Interval | None


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
    means = two_means(np.log(groups[0]), np.log(groups[1]), confidence, pooled=False)
    if isinstance(means, (TooFew, NotComputable)):
        return means
    if means.interval is None:
        return NotComputable("no interval, because the values are too large or too small")
    logs = means.interval
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
    means = two_means(np.asarray(upper), np.asarray(lower), confidence, pooled=False)
    if isinstance(means, (TooFew, NotComputable)):
        return means
    if means.interval is None:
        return NotComputable("no interval, because the values are too large or too small")
    return replace(means.interval, method="Welch's t")


def two_means(
    first: Values, second: Values, confidence: float, pooled: bool
) -> TwoMeans | Unanswered:
    """Return the mean of `first` minus the mean of `second`, each of at least two values."""
    data = arrays([first, second])
    refusal = refuse_groups(data, 2)
    if refusal is not None:
        return refusal
    scaled = standardised(data)
    if not scatters(scaled):
        return no_scatter()
    scaled_error, degrees = _error(scaled, pooled)
    statistic = float(np.mean(scaled[0]) - np.mean(scaled[1])) / scaled_error
    difference = unit(data) * float(np.mean(scaled[0]) - np.mean(scaled[1]))
    error = unit(data) * scaled_error
    margin = float(special.stdtrit(degrees, 0.5 + confidence / 2)) * error
    count = data[0].size + data[1].size
    interval = (
        Interval(
            difference, difference - margin, difference + margin, confidence, count,
            "t, pooled" if pooled else "t, Welch", degrees,
        )
        if np.isfinite(difference) and np.isfinite(margin)
        else None
    )  # fmt: skip
    return TwoMeans(statistic, degrees, (data[0].size, data[1].size), interval)


def _error(scaled: Sequence[FloatArray], pooled: bool) -> tuple[float, float]:
    """Return the standard error of the difference of two means, and its degrees of freedom."""
    sizes = np.array([group.size for group in scaled], dtype=np.float64)
    variances = np.array([float(np.var(group, ddof=1)) for group in scaled])
    degrees = float(np.sum(sizes) - sizes.size)
    if pooled:
        variances[:] = float(np.sum((sizes - 1) * variances) / degrees)
    squared_errors = variances / sizes
    if not pooled:
        degrees = float(np.sum(squared_errors) ** 2 / np.sum(squared_errors**2 / (sizes - 1)))
    return float(np.sqrt(np.sum(squared_errors))), degrees
