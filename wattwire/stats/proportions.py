"""Estimate shares k of m with exact confidence intervals, and compare two shares exactly.

What it computes: the rate of rare events (losses, rejections) with an interval of guaranteed
coverage.
How: Clopper–Pearson from the beta distribution; Fisher's exact test for two shares.
What it misses: the messages of a run are not independent, so apply this to runs.
Reference: Clopper & Pearson 1934, Biometrika 26:404; Fisher 1922, JRSS 85:87; Kohavi, Tang & Xu,
Trustworthy Online Controlled Experiments, ch. 19 (A/A comparisons).
"""

from __future__ import annotations

import numpy as np
import scipy
from scipy import special

from wattwire.stats.results import Interval, TooFew

TRIALS_MIN = 300
"""Minimum number of pooled A/A comparisons. With fewer, the interval is too wide for 5 %."""


def share_interval(hits: int, trials: int, confidence: float = 0.95) -> Interval:
    """Return the share hits/trials with its Clopper–Pearson interval.

    Raise ValueError unless 0 ≤ hits ≤ trials and trials ≥ 1.
    """
    if trials < 1 or not 0 <= hits <= trials:
        raise ValueError(f"hits, trials: found {hits}, {trials}; allowed: 0 ≤ hits ≤ trials ≥ 1")
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if hits == 0 else float(special.betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(special.betaincinv(hits + 1, trials - hits, 1.0 - tail))
    return Interval(hits / trials, low, high, confidence, trials, "Clopper–Pearson")


def same_share_p(hits: int, trials: int, other_hits: int, other_trials: int) -> float:
    """Return the two-sided p-value of Fisher's exact test of equal shares."""
    table = np.array([[hits, trials - hits], [other_hits, other_trials - other_hits]])
    return float(scipy.stats.fisher_exact(table).pvalue)


def alarm_rate(alarms: int, trials: int, confidence: float = 0.95) -> Interval | TooFew:
    """Return the share of alarms in `trials` pooled A/A comparisons, with its exact interval.

    Comparisons that share a run are not independent. Raise ValueError unless 0 ≤ alarms ≤ trials.
    """
    if not 0 <= alarms <= trials:
        raise ValueError(f"alarms, trials: found {alarms}, {trials}; allowed: 0 ≤ alarms ≤ trials")
    if trials < TRIALS_MIN:
        return TooFew(trials, TRIALS_MIN, "pooled A/A comparisons")
    return share_interval(alarms, trials, confidence)
