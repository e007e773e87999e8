"""Estimate the A/A rate: how often one treatment under two labels is reported as different.

What it computes: the share of alarms among comparisons of a treatment with itself under a second
label.
How: the share k of m has its exact (Clopper–Pearson) interval. With fewer than TRIALS_MIN pooled
comparisons, the interval is too wide to assess the 5 % level, so the function returns no rate.
What it misses: the cause of an alarm. Comparisons that share a run are not independent.
Reference: Kohavi, Tang & Xu, Trustworthy Online Controlled Experiments, ch. 19; Clopper & Pearson
1934, Biometrika 26:404.
"""

from __future__ import annotations

from wattwire.stats.proportions import share_interval
from wattwire.stats.results import Interval, TooFew

TRIALS_MIN = 300


def alarm_rate(alarms: int, trials: int, confidence: float = 0.95) -> Interval | TooFew:
    """Return the share of alarms in `trials` pooled A/A comparisons, with its exact interval.

    Raise ValueError unless 0 ≤ alarms ≤ trials.
    """
    if not 0 <= alarms <= trials:
        raise ValueError(f"alarms, trials: found {alarms}, {trials}; allowed: 0 ≤ alarms ≤ trials")
    if trials < TRIALS_MIN:
        return TooFew(trials, TRIALS_MIN, "pooled A/A comparisons")
    return share_interval(alarms, trials, confidence)
