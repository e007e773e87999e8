"""Fit a line to a response over a numeric factor within blocks, and test its lack of fit.

What it computes: intercept and slope of the response over the factor, in the data's units, and
whether the means of the factor's levels deviate from a line.
How: ordinary least squares with fixed block effects. A second model has a mean for each level
instead of the line. Its residual within block × level is the pure error. The lack of fit is the
difference between the two models' sums of squares, tested by F against the pure error. The slope's
t interval also uses the pure error, so curvature does not widen it: if the levels deviate from the
line, the slope is that of the best line over the measured levels. The intercept applies to blocks
like the measured ones, so its variance adds the variance of the mean block to that of the slope.
Its quantile has the smaller degrees of freedom of the two, which is conservative.
What it misses: scatter that increases with the response, and slopes that differ between blocks.
Both are part of the pooled error. If blocks lack levels, curvature biases the slope, and the
intercept's interval is approximate. A line that fits the measured levels need not extend beyond
them.
Reference: Montgomery, Design and Analysis of Experiments, ch. 4 (blocks) and ch. 10 (regression,
lack of fit); Draper & Smith, Applied Regression Analysis, ch. 2 (pure error); Mickey & Brown 1966,
Annals of Mathematical Statistics 37:639 (bound of the degrees of freedom of a sum of variances).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.blocked import Fit, fit_plain, interval_with
from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable

BLOCKS_MIN = 3
LEVELS_MIN = 3
"""Minimum number of levels. Two levels determine a line, so nothing would show a lack of fit."""


@dataclass(frozen=True)
class LackOfFit:
    """An F test of the levels' deviation from a line, against the pure error."""

    statistic: float
    degrees: int
    error_degrees: int
    p: float


@dataclass(frozen=True)
class LinearFit:
    """A line within blocks. `slope` is in the response's unit per unit of the factor."""

    intercept: Interval
    slope: Interval
    lack_of_fit: LackOfFit
    block_count: int
    level_count: int

    def at(self, level: float) -> float:
        """Return the response of the line at `level`, for the mean block."""
        return self.intercept.estimate + self.slope.estimate * level


def linear_fit(
    values: Sequence[Sequence[float]] | FloatArray,
    levels: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> LinearFit | Unanswered:
    """Fit a line to `values`, shape (blocks, levels), over `levels`, shape (levels,).

    A value is the response of a block at a level, or NaN if it is missing. Blocks with fewer than
    two values are excluded. The fit needs at least three blocks and three levels, and an error.
    Raise ValueError if the shapes differ, or if a level is repeated or not finite.
    """
    table = np.asarray(values, dtype=np.float64)
    positions = np.asarray(levels, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != positions.size:
        raise ValueError(f"values: found shape {table.shape}; allowed: (blocks, {positions.size})")
    if not np.isfinite(positions).all() or np.unique(positions).size < positions.size:
        raise ValueError(f"levels: found {positions.tolist()}; allowed: distinct finite numbers")
    unbounded = int(np.sum(np.isinf(table)))
    if unbounded:
        return NotComputable(f"unbounded in {unbounded} of {table.size} values (loss)")
    table = table[np.sum(~np.isnan(table), axis=1) > 1]
    if len(table) < BLOCKS_MIN:
        return TooFew(len(table), BLOCKS_MIN, "blocks for a line")
    block_of_value, level_of_value = np.nonzero(~np.isnan(table))
    level_count = np.unique(level_of_value).size
    if level_count < LEVELS_MIN:
        return TooFew(level_count, LEVELS_MIN, "levels for a line")
    response, x = table[block_of_value, level_of_value], positions[level_of_value]
    blocks = block_of_value.tolist()
    line = fit_plain(response, blocks, {}, x)
    means = fit_plain(response, blocks, {"level": level_of_value.tolist()})
    if not isinstance(line, Fit) or not isinstance(means, Fit):
        return means if not isinstance(means, Fit) else line  # type: ignore[return-value]
    if means.degrees < 1:
        needed = means.run_count - means.degrees + 1
        return TooFew(means.run_count, needed, "values for an error estimate")
    if not means.variance > 0:
        return NotComputable("the blocks do not scatter, so the error of the line is unknown")
    weights = np.zeros(line.design.shape[1])
    weights[-1] = 1.0
    pure_error = float(np.sqrt(means.variance * (weights @ line.covariance_base @ weights)))
    slope = interval_with(line, weights, confidence, pure_error, means.degrees)
    slope = replace(slope, method="t, line within blocks, pure error")
    intercept = _intercept(response, x, line, slope, confidence)
    return LinearFit(intercept, slope, _lack_of_fit(line, means), len(table), level_count)


def _lack_of_fit(line: Fit, means: Fit) -> LackOfFit:
    """Return the F test by the extra sum of squares of `means`, which contains `line`."""
    degrees = line.degrees - means.degrees
    extra = float(line.residuals @ line.residuals) - float(means.residuals @ means.residuals)
    statistic = max(0.0, extra) / degrees / means.variance
    p = float(special.fdtrc(degrees, means.degrees, statistic))
    return LackOfFit(statistic, degrees, means.degrees, p)


def _intercept(
    response: FloatArray, x: FloatArray, line: Fit, slope: Interval, confidence: float
) -> Interval:
    """Return the mean intercept of the blocks, with an interval for the population of blocks."""
    sizes = line.block_sizes
    centres = np.bincount(line.block_of_run, weights=x) / sizes
    heights = np.bincount(line.block_of_run, weights=response) / sizes - slope.estimate * centres
    estimate, distance = float(np.mean(heights)), float(np.mean(centres))
    slope_degrees = float(slope.degrees or 0)
    slope_error = (slope.high - slope.estimate) / float(
        special.stdtrit(slope_degrees, 0.5 + confidence / 2)
    )
    variance = float(np.var(heights, ddof=1)) / sizes.size + (slope_error * distance) ** 2
    # Satterthwaite's larger degrees of freedom cover only .925 with three scattered blocks.
    degrees = min(float(sizes.size - 1), slope_degrees)
    margin = float(special.stdtrit(degrees, 0.5 + confidence / 2)) * float(np.sqrt(variance))
    return Interval(
        estimate, estimate - margin, estimate + margin, confidence, line.run_count,
        "t over blocks", degrees,
    )  # fmt: skip
