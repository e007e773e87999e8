"""Choose the level of several intervals so that disjoint intervals show that their truths differ.

What it computes: the confidence level of each of k independent intervals, at which any two of them
are disjoint in at most a given share of cases if all have the same true value.
How: two intervals of z standard errors are disjoint if the estimates are more than 2·z apart. The
range of k estimates exceeds q standard errors in the given share of cases, by the distribution of
the studentized range, so z is q/2. Bonferroni's level is higher: it ensures that every interval
holds its true value, which disjointness does not need.
What it misses: unequal errors and few degrees of freedom, for which the t quantiles of the
intervals allow. `bench/README.md` has the simulation.
Reference: Tukey 1949, Biometrics 5:99 (studentized range); Goldstein & Healy 1995, Journal of the
Royal Statistical Society A 158:175 (comparison of intervals by their overlap).
"""

from __future__ import annotations

import math
from functools import lru_cache

import scipy
from scipy import special


@lru_cache
def disjoint_confidence(intervals: int, alarm_rate: float) -> float:
    """Return the level at which two of `intervals` are disjoint by chance at `alarm_rate`, 0 … 1.

    Raise ValueError for fewer than two intervals.
    """
    if intervals < 2:
        raise ValueError(f"intervals: found {intervals}; allowed: at least 2")
    quantile = float(scipy.stats.studentized_range.isf(alarm_rate, intervals, math.inf))
    return float(2.0 * special.ndtr(quantile / 2.0) - 1.0)
