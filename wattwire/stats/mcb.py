"""Which of many alternatives is lowest, and which are as low: multiple comparisons with the best.

What: for each combination of levels of some factors, whether it may be the lowest of all, and how
far above the lowest it may lie at most, with one confidence for all of these statements.
How: every alternative is taken for the lowest in turn and compared with all others by one-sided
t limits on the model's pooled error (Bonferroni over them, so for any design). Those that none
is shown to lie below form a set that holds the lowest one; an alternative's limit is its largest
distance to a member of that set. Only comparisons with the true lowest have to hold, so the price
is that of k − 1 of them and not of all pairs.
What it misses: unequal variances between treatments (the error is pooled). Bonferroni's limits
are a little wider than Dunnett's would be. Where several are lowest and exactly equal, only one of
them is sure to be in the set.
Reference: Hsu 1984, Annals of Statistics 12:1136; Hsu 1996, Multiple Comparisons: Theory and
methods, ch. 4; Edwards & Hsu 1983, JASA 78:965 (unequal variances of differences); Dunn 1961,
JASA 56:52.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.blocked import Fit, Level, Unanswered, contrast_weights, is_estimable
from wattwire.stats.results import NotComputable, TooFew

FloatArray = NDArray[np.float64]
ALTERNATIVES_MAX = 200
"""More than that and their pairs take longer than a reader waits."""


@dataclass(frozen=True)
class Alternative:
    """One combination of levels; `over_lowest` and `at_most` are ratios, 1 or more.

    `over_lowest` is the estimate over that of the lowest one, `at_most` how many times the truly
    lowest one it may be. `may_be_lowest` says that nothing is shown to lie below it.
    """

    levels: tuple[Level, ...]
    over_lowest: float
    at_most: float
    may_be_lowest: bool


@dataclass(frozen=True)
class Ranking:
    """Alternatives from the lowest estimate up; every statement holds together with `level`."""

    factors: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    level: float
    degrees: int
    run_count: int
    block_count: int


def lowest_of(fit: Fit, factors: Sequence[str], confidence: float = 0.95) -> Ranking | Unanswered:
    """Rank the combinations of `factors` by a log-scale fit, averaged over its other factors.

    Raises ValueError for a plain fit.
    """
    if fit.scale != "log":
        raise ValueError(f"fit: {fit.scale} scale found; ratios are taken on the log scale")
    named = tuple(name for name in factors if name in fit.factors)
    if not named:
        return NotComputable("one alternative alone is left: nothing to compare it with")
    if fit.kind != "treatments" and len(named) > 1:
        return TooFew(1, 2, "blocks to tell combinations of factors apart")
    if fit.degrees < 1 or not fit.variance > 0:
        return TooFew(fit.run_count, fit.run_count - fit.degrees + 1, "runs for an error estimate")
    known = _combinations(fit, named)
    if len(known) > ALTERNATIVES_MAX:
        return NotComputable(f"{len(known)} alternatives, at most {ALTERNATIVES_MAX} are compared")
    pairs = _differences(fit, named, known)
    if isinstance(pairs, NotComputable):
        return pairs
    above, error = pairs
    count = len(known)
    share = 1.0 - (1.0 - confidence) / (count - 1)
    reach = float(special.stdtrit(fit.degrees, share)) * error
    may_be = np.asarray(np.all(above - reach <= 0, axis=1), dtype=np.bool_)
    if not may_be.any():
        return NotComputable("runs that are missing leave the alternatives in no order")
    limit = np.array([_farthest(at, above, reach, may_be) for at in range(count)])
    # Unequal combinations of other factors make differences that need not add up: by their means.
    means = above.mean(axis=1)
    order = np.argsort(means, kind="stable")
    first = order[0]
    found = tuple(
        Alternative(
            known[at],
            math.exp(above[at, first]),
            math.exp(limit[at]),
            bool(may_be[at]),
        )
        for at in order
    )
    return Ranking(named, found, confidence, fit.degrees, fit.run_count, fit.block_count)


def _farthest(at: int, above: FloatArray, reach: FloatArray, may_be: NDArray[np.bool_]) -> float:
    """Upper limit of one alternative's distance to the lowest, on the log scale, 0 or more."""
    others = np.flatnonzero(may_be)
    others = others[others != at]
    return max(0.0, float(np.max(above[at, others] + reach[at, others], initial=0.0)))


def _combinations(fit: Fit, named: Sequence[str]) -> list[tuple[Level, ...]]:
    """The combinations of levels that some treatment has, in order of appearance."""
    places = [list(fit.factors).index(name) for name in named]
    return list(dict.fromkeys(tuple(t[at] for at in places) for t in fit.treatments))


def _differences(
    fit: Fit, named: Sequence[str], known: Sequence[tuple[Level, ...]]
) -> tuple[FloatArray, FloatArray] | NotComputable:
    """Estimated log differences, row less column, and their standard errors, shape (k, k) each."""
    above, error = (np.zeros((len(known), len(known))) for _ in range(2))
    for one, other in itertools.combinations(range(len(known)), 2):
        weights, strata = _weights(fit, named, known[one], known[other])
        if strata == 0 or not is_estimable(fit, weights):
            sides = [" ".join(map(str, known[at])) for at in (one, other)]
            return NotComputable(f"no block and no combination links {sides[0]} and {sides[1]}")
        found = float(weights @ fit.coefficients)
        above[one, other], above[other, one] = found, -found
        spread = math.sqrt(fit.variance * float(weights @ fit.covariance_base @ weights))
        error[one, other] = error[other, one] = spread
    return above, error


def _weights(
    fit: Fit, named: Sequence[str], one: tuple[Level, ...], other: tuple[Level, ...]
) -> tuple[FloatArray, int]:
    """Weights on the fit's coefficients over the combinations of other factors that hold both."""
    if len(named) == 1:
        return contrast_weights(fit, named[0], one[0], other[0], None)
    places = [list(fit.factors).index(name) for name in named]
    sides: list[dict[tuple[Level, ...], int]] = [{}, {}]
    for at, treatment in enumerate(fit.treatments):
        own = tuple(treatment[place] for place in places)
        rest = tuple(level for place, level in enumerate(treatment) if place not in places)
        for side, wanted in zip(sides, (one, other), strict=True):
            if own == wanted:
                side[rest] = at
    both = [rest for rest in sides[0] if rest in sides[1]]
    weights = np.zeros(fit.design.shape[1])
    for rest in both:
        weights[sides[0][rest]] += 1.0 / len(both)
        weights[sides[1][rest]] -= 1.0 / len(both)
    return weights, len(both)
