"""Test main effects and interactions of factors by F, with partial omega squared.

What it computes: for a factor, whether any of its levels differ; for a pair of factors, whether the
contrasts of one factor change with the level of the other. On the log scale of `fit_log`, the
contrasts are ratios. On the untransformed scale of `fit_plain`, they are differences. The two
scales may disagree, so both are available.
How: each contrast of the fitted block model is averaged with equal weight over the combinations
that have both levels. A joint F test compares the contrasts with the pooled error. Omega squared is
the variance of the effect over the sum of its variance and the error's variance. Its confidence
limits are the noncentralities at which the observed F becomes improbable. For the limits, the error
has at most TAIL_DEGREES degrees of freedom, because heavy tails make it uncertain regardless of the
number of runs. Uncorrected limits cover .78 at a nominal .95 under t errors with 3 degrees of
freedom. An interaction is also tested without assuming normal errors: the residuals of the model
without it are permuted within blocks (seeded), and the share of larger F is the second p.
What it misses: unequal spread between treatments; interactions of three factors. With one block, no
interaction is estimable. A negative estimate of omega squared is reported as zero.
Reference: Montgomery, Design and Analysis of Experiments, ch. 4 and 5; Searle, Linear Models, 5;
Steiger 2004, Psychological Methods 9:164 (noncentral limits); Olejnik & Algina 2003, Psychological
Methods 8:434 (partial omega squared); Freedman & Lane 1983, JBES 1:292 (permuted residuals).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.blocked import Fit, contrast_weights, is_estimable
from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable

PERMUTATIONS = 499
PERMUTED_RUNS_MAX = 5_000
"""Maximum number of runs for permutations of residuals. More runs need no check of normality, and
their permutations would need gigabytes.
"""
SEED = 1
RELATIVE_RANK = 1e-9
TAIL_DEGREES = 10.0


@dataclass(frozen=True)
class Effect:
    """An F test of one source of variation, and the share of the variation that it explains.

    `degrees` and `error_degrees` are the degrees of freedom of the source and of the pooled error.
    `omega_squared` is partial, 0 … 1. Only interactions have `permuted_p`.
    """

    source: tuple[str, ...]
    statistic: float
    degrees: int
    error_degrees: int
    p: float
    omega_squared: Interval
    permuted_p: float | None = None


def main_effect(fit: Fit, factor: str, confidence: float = 0.95) -> Effect | Unanswered:
    """Test whether the levels of `factor` differ, over the whole fit."""
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
    """Test whether the contrasts of factor `one` change with the level of factor `other`."""
    if fit.kind != "treatments":
        return TooFew(fit.block_count, 2, "blocks to separate an interaction from the error")
    if min(len(fit.factors.get(name, ())) for name in (one, other)) < 2:
        return NotComputable(f"{one} or {other} has one level")
    rows = _interaction_rows(fit, one, other)
    if rows is None:
        return NotComputable(f"not every level of {one} was run at every level of {other}")
    effect = effect_of(fit, (one, other), rows, confidence)
    if not isinstance(effect, Effect) or permutations < 1 or fit.run_count > PERMUTED_RUNS_MAX:
        return effect
    return replace(effect, permuted_p=_permuted_p(fit, rows, effect.statistic, permutations))


def _interaction_rows(fit: Fit, first_factor: str, second_factor: str) -> FloatArray | None:
    first_base, *first_levels = fit.factors[first_factor]
    second_base, *second_levels = fit.factors[second_factor]
    rows = []
    for level in first_levels:
        weights_at_base, strata = contrast_weights(
            fit, first_factor, level, first_base, (second_factor, second_base)
        )
        for second_level in second_levels:
            weights, second_strata = contrast_weights(
                fit, first_factor, level, first_base, (second_factor, second_level)
            )
            if not strata or not second_strata or not is_estimable(fit, weights - weights_at_base):
                return None
            rows.append(weights - weights_at_base)
    return np.array(rows)


def effect_of(
    fit: Fit, source: tuple[str, ...], rows: FloatArray, confidence: float
) -> Effect | Unanswered:
    """Return the F test that all contrasts `rows`, shape (contrasts, columns), are zero."""
    if fit.degrees < 1:
        return TooFew(fit.run_count, fit.run_count - fit.degrees + 1, "runs for an error estimate")
    if not fit.variance > 0:
        return NotComputable("the runs do not scatter, so the error is unknown")
    inverse, degrees = _inverse(rows @ fit.covariance_base @ rows.T)
    contrasts = rows @ fit.coefficients
    statistic = float(contrasts @ inverse @ contrasts) / (degrees * fit.variance)
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
    """Return the degrees of freedom of an error variance if its tails may be heavy."""
    return 1.0 / (1.0 / error_degrees + 1.0 / TAIL_DEGREES)


def _inverse(matrix: FloatArray) -> tuple[FloatArray, int]:
    values, vectors = np.linalg.eigh(matrix)
    independent = values > RELATIVE_RANK * float(values.max())
    inverse = (vectors[:, independent] / values[independent]) @ vectors[:, independent].T
    return np.asarray(inverse, dtype=np.float64), int(independent.sum())


def omega_squared(
    statistic: float,
    degrees: int,
    error_degrees: int,
    run_count: int,
    confidence: float = 0.95,
    known: float | None = None,
) -> Interval:
    """Return partial omega squared of an F `statistic`, with an interval from the noncentral F.

    `known` is the number of degrees of freedom of the error for the interval. The default,
    `error_degrees`, is correct for normal errors.
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
    """Return the noncentrality at which P(F ≤ `statistic`) is `share`; 0 if it does not exist."""

    def excess(noncentrality: float) -> float:
        if noncentrality <= 0.0:
            return float(special.fdtr(degrees, error_degrees, statistic)) - share
        # scipy.stats.ncf.cdf calls the same function, but checks its arguments each time.
        chance = special.ncfdtr(degrees, error_degrees, noncentrality, statistic)
        # For large noncentralities, the series underflows to NaN, and the probability is 0.
        return (0.0 if np.isnan(chance) else float(chance)) - share

    if excess(0.0) <= 0.0:
        return 0.0
    upper = max(1.0, degrees * statistic)
    while excess(upper) > 0.0:
        upper *= 2.0
    return float(scipy.optimize.brentq(excess, 0.0, upper, xtol=1e-8 * upper))


@lru_cache(maxsize=2)
def _orders(blocks: bytes, permutations: int) -> NDArray[np.int64]:
    """Return seeded permutations of the runs within blocks, shape (permutations, runs).

    All pairs of factors use the same permutations.
    """
    block_of_run = np.frombuffer(blocks, dtype=np.int64)
    rng = np.random.default_rng(SEED)
    # Sorting by block number plus a random fraction shuffles every block at once.
    return np.argsort(block_of_run[None, :] + rng.random((permutations, block_of_run.size)), axis=1)


def _permuted_p(fit: Fit, rows: FloatArray, statistic: float, permutations: int) -> float:
    """Return the share of within-block permutations whose F is at least as large.

    The fitted values of the reduced model are in the column space of the full model and have a zero
    contrast. Both parts of F therefore depend only on the permuted residuals, whose sum of squares
    is constant.
    """
    covariance = fit.covariance_base
    inverse, degrees = _inverse(rows @ covariance @ rows.T)
    constrained = fit.coefficients - covariance @ rows.T @ (inverse @ (rows @ fit.coefficients))
    residuals = fit.design @ (fit.coefficients - constrained) + fit.residuals
    blocks = fit.block_of_run
    permuted = residuals[_orders(blocks.tobytes(), permutations)]
    sums = permuted @ fit.design[np.argsort(blocks, kind="stable")]
    coefficients = sums @ covariance
    error_squares = float(residuals @ residuals) - np.einsum("ij,ij->i", coefficients, sums)
    contrasts = coefficients @ rows.T
    explained = np.einsum("ij,ij->i", contrasts @ inverse, contrasts)
    # A permutation that the full model fits without residuals has an infinite F.
    ratios = np.full(error_squares.shape, np.inf)
    np.divide(
        explained * fit.degrees, error_squares * degrees, out=ratios, where=error_squares > 0.0
    )
    larger = int(np.sum(ratios >= statistic * (1.0 - 1e-9)))
    return (larger + 1) / (permutations + 1)
