"""Test means by Student's and Welch's t, and by one-way and Welch's analysis of variance.

All tests treat the groups as unpaired and ignore the variation that blocks explain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from scipy import special

from wattwire.papers.significance import Significance, f_ratio
from wattwire.stats.groups import (
    ROUNDING,
    Unanswered,
    Values,
    arrays,
    no_scatter,
    refuse_groups,
    scatters,
    standardised,
)
from wattwire.stats.results import NotComputable, TooFew
from wattwire.stats.two_occasions import two_means


def student_t(first: Values, second: Values, confidence: float = 0.95) -> Significance | Unanswered:
    """Return Student's t-test for two groups with a common variance.

    What it computes: the difference of the means over its standard error, with a pooled variance.
    Each group needs at least two values.
    What it misses: unequal variances with unequal sizes; skew in small samples.
    Reference: Student 1908, Biometrika 6:1.
    """
    return _two_sample_t(first, second, confidence, pooled=True)


def welch_t(first: Values, second: Values, confidence: float = 0.95) -> Significance | Unanswered:
    """Return Welch's t-test for two groups with separate variances.

    What it computes: the difference of the means over its standard error, with Satterthwaite's
    degrees of freedom.
    What it misses: skew. With fewer than five values per group, the test is conservative.
    Reference: Welch 1947, Biometrika 34:28.
    """
    return _two_sample_t(first, second, confidence, pooled=False)


def _two_sample_t(
    first: Values, second: Values, confidence: float, pooled: bool
) -> Significance | Unanswered:
    means = two_means(first, second, confidence, pooled)
    if isinstance(means, (TooFew, NotComputable)):
        return means
    return Significance(
        "Student's t" if pooled else "Welch's t",
        "t",
        means.statistic,
        2 * float(special.stdtr(means.degrees, -abs(means.statistic))),
        means.counts,
        "t distribution",
        (means.degrees,),
        interval=means.interval,
    )


def anova(groups: Sequence[Values]) -> Significance | Unanswered:
    """Return a one-way analysis of variance.

    What it computes: the variance between the means of the groups over the variance within groups.
    What it misses: unequal variances (with unequal sizes, the false-positive rate may be several
    times the nominal level); blocks.
    Reference: Fisher 1925, Statistical Methods for Research Workers, ch. 7.
    """
    data = arrays(groups)
    refusal = refuse_groups(data, 1)
    if refusal is None and sum(group.size for group in data) <= len(data):
        refusal = refuse_groups(data, 2)
    if refusal is not None:
        return refusal
    scaled = standardised(data)
    if not scatters(scaled):
        return no_scatter()
    f_and_p = f_ratio(scaled)
    counts = tuple(group.size for group in data)
    return Significance(
        "ANOVA", "F", f_and_p[0], f_and_p[1], counts, "F distribution",
        (len(data) - 1.0, sum(counts) - float(len(data))),
    )  # fmt: skip


def welch_anova(groups: Sequence[Values]) -> Significance | Unanswered:
    """Return Welch's analysis of variance for groups with separate variances.

    What it computes: the variance of the group means, weighted by their precision.
    What it misses: skew. With fewer than five values per group, the false-positive rate is too
    high.
    Reference: Welch 1951, Biometrika 38:330.
    """
    data = arrays(groups)
    refusal = refuse_groups(data, 2)
    if refusal is not None:
        return refusal
    scaled = standardised(data)
    if any(float(np.ptp(group)) <= ROUNDING for group in scaled):
        return no_scatter()
    count = float(len(scaled))
    sizes = np.array([group.size for group in scaled], dtype=np.float64)
    weights = sizes / np.array([float(np.var(group, ddof=1)) for group in scaled])
    means = np.array([float(np.mean(group)) for group in scaled])
    total = float(np.sum(weights))
    centre = float(np.sum(weights * means)) / total
    lack = float(np.sum((1 - weights / total) ** 2 / (sizes - 1)))
    between = float(np.sum(weights * (means - centre) ** 2)) / (count - 1)
    statistic = between / (1 + 2 * (count - 2) / (count**2 - 1) * lack)
    degrees = (count - 1, (count**2 - 1) / (3 * lack))
    return Significance(
        "Welch's ANOVA",
        "F",
        statistic,
        float(scipy.stats.f.sf(statistic, *degrees)),
        tuple(group.size for group in data),
        "F distribution",
        degrees,
    )
