"""Compare all pairs of groups after a test over all groups rejects.

Each function takes groups by name, compares all pairs in the given order, and returns p-values
corrected for the number of comparisons. Dunn's test also returns raw p-values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
import scipy
from scipy import special

from wattwire.papers.significance import Pair
from wattwire.stats.groups import (
    ROUNDING,
    FloatArray,
    Unanswered,
    Values,
    arrays,
    no_scatter,
    refuse_groups,
    scatters,
    standardised,
)
from wattwire.stats.results import Interval, NotComputable, TooFew


def adjusted_bonferroni(p: Sequence[float]) -> list[float]:
    """Return each p times the number of comparisons, at most 1.

    Reference: Dunn 1961, JASA 56:52.
    """
    return [min(1.0, raw * len(p)) for raw in p]


def adjusted_holm(p: Sequence[float]) -> list[float]:
    """Return Holm's step-down p-values.

    Reference: Holm 1979, Scandinavian J. of Statistics 6:65.
    """
    order = sorted(range(len(p)), key=lambda index: p[index])
    adjusted, highest = [0.0] * len(p), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, p[index] * (len(p) - rank)))
        adjusted[index] = highest
    return adjusted


def tukey_hsd(
    groups: Mapping[str, Values], confidence: float = 0.95
) -> tuple[Pair, ...] | Unanswered:
    """Return Tukey's honestly significant differences, in Kramer's form for unequal sizes.

    What it computes: all differences of means with p-values and simultaneous intervals.
    How: the studentised range, with the variance pooled over the groups.
    What it misses: unequal variances.
    Reference: Tukey 1949, Biometrics 5:99; Kramer 1956, Biometrics 12:307.
    """
    data = arrays(list(groups.values()))
    refusal = refuse_groups(data, 1)
    if refusal is None and sum(group.size for group in data) <= len(data):
        refusal = refuse_groups(data, 2)
    if refusal is not None:
        return refusal
    if not scatters(standardised(data)):
        return no_scatter()
    degrees = float(sum(group.size for group in data) - len(data))
    scale = _scale(data)
    squares = sum(float(np.sum((group / scale - np.mean(group / scale)) ** 2)) for group in data)
    variances = [squares / degrees] * len(data)
    return _studentised_range_pairs(
        list(groups), data, scale, variances, [degrees], confidence, "Tukey"
    )


def games_howell(
    groups: Mapping[str, Values], confidence: float = 0.95
) -> tuple[Pair, ...] | Unanswered:
    """Return Games–Howell pairs: a variance per group, and Welch's degrees of freedom per pair.

    Otherwise, the method is the same as in `tukey_hsd`.

    What it misses: with fewer than about six values per group, the false-positive rate is too high.
    Reference: Games & Howell 1976, J. of Educational Statistics 1:113.
    """
    data = arrays(list(groups.values()))
    refusal = refuse_groups(data, 2)
    if refusal is not None:
        return refusal
    if any(float(np.ptp(group)) <= ROUNDING for group in standardised(data)):
        return no_scatter()
    scale = _scale(data)
    variances = [float(np.var(group / scale, ddof=1)) for group in data]
    squared_errors = [
        variance / group.size for variance, group in zip(variances, data, strict=True)
    ]
    degrees = [
        (squared_errors[i] + squared_errors[j]) ** 2
        / (
            squared_errors[i] ** 2 / (data[i].size - 1)
            + squared_errors[j] ** 2 / (data[j].size - 1)
        )
        for i, j in combinations(range(len(data)), 2)
    ]
    return _studentised_range_pairs(
        list(groups), data, scale, variances, degrees, confidence, "Games–Howell"
    )


def _scale(data: Sequence[FloatArray]) -> float:
    return float(np.max(np.abs(np.concatenate(data)))) or 1.0


@lru_cache(maxsize=1024)
def _range_quantile(confidence: float, groups: int, degrees: float) -> float:
    return float(scipy.stats.studentized_range.ppf(confidence, groups, degrees))


def _studentised_range_pairs(
    names: Sequence[str],
    data: Sequence[FloatArray],
    scale: float,
    variances: Sequence[float],
    degrees: Sequence[float],
    confidence: float,
    method: str,
) -> tuple[Pair, ...]:
    """Return all pairs by the studentised range.

    `degrees` has one common entry or one entry per pair.
    """
    pairs = list(combinations(range(len(data)), 2))
    degrees = list(degrees) * len(pairs) if len(degrees) == 1 else degrees
    means = [float(np.mean(group / scale)) for group in data]
    results = []
    for (i, j), freedom in zip(pairs, degrees, strict=True):
        error = float(np.sqrt((variances[i] / data[i].size + variances[j] / data[j].size) / 2))
        difference = means[i] - means[j]
        statistic = abs(difference) / error
        p = float(scipy.stats.studentized_range.sf(statistic, len(data), freedom))
        margin = error * _range_quantile(confidence, len(data), freedom)
        low, high = (difference - margin) * scale, (difference + margin) * scale
        count = data[i].size + data[j].size
        interval = (
            Interval(difference * scale, low, high, confidence, count, f"{method}, simultaneous",
                     freedom)
            if np.isfinite(low) and np.isfinite(high)
            else None
        )  # fmt: skip
        results.append(
            Pair(names[i], names[j], difference * scale, "q", statistic,
                 {method: min(1.0, max(0.0, p))}, interval)
        )  # fmt: skip
    return tuple(results)


def dunn(groups: Mapping[str, Values]) -> tuple[Pair, ...] | Unanswered:
    """Return Dunn's test of all pairs: differences of mean ranks over all groups.

    What it computes: z for each pair, with the variance of the ranks corrected for ties. p is raw
    ("none"), by Bonferroni and by Holm. `estimate` is the difference of the mean ranks.
    What it misses: the normal approximation is too coarse below about five values per group. The
    p-value of a pair also depends on the other groups.
    Reference: Dunn 1964, Technometrics 6:241.
    """
    data = arrays(list(groups.values()))
    refusal = refuse_groups(data, 1, finite=False)
    if refusal is not None:
        return refusal
    sizes = [group.size for group in data]
    total = sum(sizes)
    ranks = scipy.stats.rankdata(np.concatenate(data))
    if total < 3:
        return TooFew(total, 3, "values")
    if float(np.ptp(ranks)) == 0:
        return NotComputable("all values are equal")
    _, ties = np.unique(ranks, return_counts=True)
    variance = total * (total + 1) / 12 - float(np.sum(ties**3.0 - ties)) / (12 * (total - 1))
    means = [float(np.mean(group_ranks)) for group_ranks in np.split(ranks, np.cumsum(sizes)[:-1])]
    pairs = list(combinations(range(len(data)), 2))
    differences = [means[i] - means[j] for i, j in pairs]
    scores = [
        difference / float(np.sqrt(variance * (1 / sizes[i] + 1 / sizes[j])))
        for (i, j), difference in zip(pairs, differences, strict=True)
    ]
    raw = [2 * float(special.ndtr(-abs(score))) for score in scores]
    bonferroni, holm = adjusted_bonferroni(raw), adjusted_holm(raw)
    names = list(groups)
    return tuple(
        Pair(names[i], names[j], differences[pair], "z", scores[pair],
             {"none": raw[pair], "Bonferroni": bonferroni[pair], "Holm": holm[pair]})
        for pair, (i, j) in enumerate(pairs)
    )  # fmt: skip
