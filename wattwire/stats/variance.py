"""Which factors, and which pairs of factors, move a response: F tests and partial omega squared.

What: for a factor, whether any of its levels differs; for a pair, whether one factor's contrasts
change with the other's level. On the log scale of `fit_log`: whether ratios differ; on the plain
scale of `fit_plain`: whether differences differ. The two need not agree, so both can be asked.
How: the fitted block model's own contrasts, each averaged with equal weight over the combinations
that hold both levels, tested together by F against the pooled error. Omega squared is the effect's
share of its own variance and the error's; its limits are those noncentralities at which the F that
was seen turns improbable. There the error counts as known by TAIL_DEGREES degrees at most, because
heavy tails leave it that uncertain however many runs there are: plain limits hold .78 of a nominal
.95 under t errors of 3 degrees. An interaction is checked without normal errors: residuals of the
model without it are permuted within blocks (seeded) and the share of larger F is its second p.
What it misses: unequal spread between treatments; with one block there is no interaction to see;
three factors at once. Omega squared's estimate may be below zero: then it is printed as zero.
Reference: Montgomery, Design and Analysis of Experiments, ch. 4 and 5; Searle, Linear Models, 5;
Steiger 2004, Psychological Methods 9:164 (noncentral limits); Olejnik & Algina 2003, Psychological
Methods 8:434 (partial omega squared); Freedman & Lane 1983, JBES 1:292 (permuted residuals).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from wattwire.stats.blocked import Fit, contrast_weights, is_estimable
from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable

PERMUTATIONS = 499
PERMUTED_RUNS_MAX = 5_000
"""Runs beyond which residuals are not permuted: so many need no check of their normality, and the
orders would take gigabytes."""
SEED = 1
RELATIVE_RANK = 1e-9
TAIL_DEGREES = 10.0


@dataclass(frozen=True)
class Effect:
    """An F test of one source of a response's variation, and the share it accounts for.

    `degrees` are those of the source, `error_degrees` of the pooled error. `omega_squared` is
    partial, 0 … 1. `permuted_p` stands for interactions only.
    """

    source: tuple[str, ...]
    statistic: float
    degrees: int
    error_degrees: int
    p: float
    omega_squared: Interval
    permuted_p: float | None = None


def main_effect(fit: Fit, factor: str, confidence: float = 0.95) -> Effect | Unanswered:
    """Whether any level of `factor` differs from another, over the whole fit."""
    levels = fit.factors.get(factor, ())
    if len(levels) < 2:
        return NotComputable(f"{factor} has one level")
    rows = []
    for level in levels[1:]:
        weights, strata = contrast_weights(fit, factor, level, levels[0], None)
        if not strata or not is_estimable(fit, weights):
            return NotComputable(f"{factor}: {level} and {levels[0]} are not comparable")
        rows.append(weights)
    return effect_of(fit, (factor,), np.array(rows), confidence)


def interaction(
    fit: Fit, one: str, other: str, confidence: float = 0.95, permutations: int = PERMUTATIONS
) -> Effect | Unanswered:
    """Whether contrasts of factor `one` change with the level of factor `other`."""
    if fit.kind != "treatments":
        return TooFew(fit.block_count, 2, "blocks to separate an interaction from the error")
    if min(len(fit.factors.get(name, ())) for name in (one, other)) < 2:
        return NotComputable(f"{one} or {other} has one level")
    rows = _interaction_rows(fit, one, other)
    if rows is None:
        return NotComputable(f"not every level of {one} was run at every level of {other}")
    found = effect_of(fit, (one, other), rows, confidence)
    if not isinstance(found, Effect) or permutations < 1 or fit.run_count > PERMUTED_RUNS_MAX:
        return found
    return replace(found, permuted_p=_permuted_p(fit, rows, found.statistic, permutations))


def _interaction_rows(fit: Fit, one: str, other: str) -> FloatArray | None:
    first, *rest = fit.factors[one]
    base, *others = fit.factors[other]
    rows = []
    for level in rest:
        at_base, strata = contrast_weights(fit, one, level, first, (other, base))
        for place in others:
            weights, found = contrast_weights(fit, one, level, first, (other, place))
            if not strata or not found or not is_estimable(fit, weights - at_base):
                return None
            rows.append(weights - at_base)
    return np.array(rows)


def effect_of(
    fit: Fit, source: tuple[str, ...], rows: FloatArray, confidence: float
) -> Effect | Unanswered:
    """The F test that all contrasts `rows`, shape (contrasts, columns), are zero."""
    if fit.degrees < 1:
        return TooFew(fit.run_count, fit.run_count - fit.degrees + 1, "runs for an error estimate")
    if not fit.variance > 0:
        return NotComputable("the runs do not scatter: there is no error to compare with")
    middle, degrees = _inverse(rows @ fit.covariance_base @ rows.T)
    found = rows @ fit.coefficients
    statistic = float(found @ middle @ found) / (degrees * fit.variance)
    if not np.isfinite(statistic):
        return NotComputable("the values are too large to be squared")
    return Effect(
        source,
        statistic,
        degrees,
        fit.degrees,
        float(special.fdtrc(degrees, fit.degrees, np.maximum(statistic, 0.0))),
        omega_squared(
            statistic, degrees, fit.degrees, fit.run_count, confidence, known_degrees(fit.degrees)
        ),
    )


def known_degrees(error_degrees: float) -> float:
    """Degrees by which an error's variance is known where its tails may be heavy."""
    return 1.0 / (1.0 / error_degrees + 1.0 / TAIL_DEGREES)


def _inverse(matrix: FloatArray) -> tuple[FloatArray, int]:
    values, vectors = np.linalg.eigh(matrix)
    kept = values > RELATIVE_RANK * float(values.max())
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return np.asarray(inverse, dtype=np.float64), int(kept.sum())


def omega_squared(
    statistic: float,
    degrees: int,
    error_degrees: int,
    run_count: int,
    confidence: float = 0.95,
    known: float | None = None,
) -> Interval:
    """Partial omega squared of an F `statistic`, with limits by the noncentral F distribution.

    `known` is how many degrees the limits take the error to be known by; `error_degrees` unless
    said otherwise, which is right for normal errors.
    """
    excess = degrees * (statistic - 1.0)
    estimate = max(0.0, excess / (excess + run_count)) if excess + run_count > 0 else 0.0
    tail = (1.0 - confidence) / 2.0
    low, high = (
        _noncentrality(statistic, degrees, known or error_degrees, share)
        for share in (1.0 - tail, tail)
    )
    low, high = low / (low + run_count), high / (high + run_count)
    return Interval(
        estimate,
        min(low, estimate),
        max(high, estimate),
        confidence,
        run_count,
        "partial omega squared, noncentral F",
        float(error_degrees),
    )


def _noncentrality(statistic: float, degrees: int, error_degrees: float, share: float) -> float:
    """The noncentrality at which an F up to `statistic` has chance `share`; 0 where none has."""

    def excess(noncentrality: float) -> float:
        if noncentrality <= 0.0:
            return float(special.fdtr(degrees, error_degrees, statistic)) - share
        # What ncf.cdf of scipy.stats calls, without a check of its arguments each time.
        chance = special.ncfdtr(degrees, error_degrees, noncentrality, statistic)
        # Far out the series underflows to NaN: nothing that large is ever so small.
        return (0.0 if np.isnan(chance) else float(chance)) - share

    if excess(0.0) <= 0.0:
        return 0.0
    upper = max(1.0, degrees * statistic)
    while excess(upper) > 0.0:
        upper *= 2.0
    return float(optimize.brentq(excess, 0.0, upper, xtol=1e-8 * upper))


@lru_cache(maxsize=2)
def _orders(blocks: bytes, permutations: int) -> NDArray[np.int64]:
    """Seeded orders of the runs, shuffled inside blocks: the same for all pairs of factors."""
    of_run = np.frombuffer(blocks, dtype=np.int64)
    rng = np.random.default_rng(SEED)
    # Sorting by block and then by chance shuffles every block at once.
    return np.argsort(of_run[None, :] + rng.random((permutations, of_run.size)), axis=1)


def _permuted_p(fit: Fit, rows: FloatArray, statistic: float, permutations: int) -> float:
    """Share of within-block permutations of the reduced model's residuals with as large an F.

    What the reduced model expects lies in the full model's reach and has no such contrast: to
    both parts of F only the permuted residuals matter, and the sum of their squares never changes.
    """
    base = fit.covariance_base
    middle, degrees = _inverse(rows @ base @ rows.T)
    constrained = fit.coefficients - base @ rows.T @ (middle @ (rows @ fit.coefficients))
    residuals = fit.design @ (fit.coefficients - constrained) + fit.residuals
    blocks = fit.block_of_run
    drawn = residuals[_orders(blocks.tobytes(), permutations)]
    sums = drawn @ fit.design[np.argsort(blocks, kind="stable")]
    found = sums @ base
    left = float(residuals @ residuals) - np.einsum("ij,ij->i", found, sums)
    tested = found @ rows.T
    explained = np.einsum("ij,ij->i", tested @ middle, tested)
    # An order of which the model leaves nothing has an infinite F: as large as any that was seen.
    ratios = np.full(left.shape, np.inf)
    np.divide(explained * fit.degrees, left * degrees, out=ratios, where=left > 0.0)
    larger = int(np.sum(ratios >= statistic * (1.0 - 1e-9)))
    return (larger + 1) / (permutations + 1)
