"""Check the errors of a block model for unequal spread, outliers and serial correlation.

What it computes: whether the levels of a factor have unequal variances, whether single runs are
outliers, and whether the residuals of neighbours in run order are correlated.
How: all checks use the residuals of the fitted model. Each residual contains a part of the errors
of all runs in its block. For the spread, the error variance of each level is therefore the solution
of a linear system of the squared residuals. Its p is the share of seeded samples from the pooled
residuals with at least the same ratio. For outliers, the largest residual is compared with the size
that FAR_OUT_SHARE of normal samples with the same number of runs exceed. For the order, the lag-one
correlation in run order is compared with its normal limit.
What it misses: with two treatments, both have the same absolute residual in every block, so their
spreads cannot be distinguished. This does not affect their contrast, which is one difference per
block. With few runs, the power is low, so the absence of an alarm proves nothing.
Reference: Rao 1970, JASA 65:161 (variances in a linear model); Grubbs 1948, JASA 43:243 (the same
in blocks); Davison & Hinkley, Bootstrap Methods and their Application, 4.4; Barnett & Lewis,
Outliers in Statistical Data, 6.3; Anderson 1942, Annals of Mathematical Statistics 13:1.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.blocked import Fit, centred
from wattwire.stats.results import NotComputable, TooFew

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable

LEVEL_RUNS_MIN = 5
"""Minimum number of runs per level for a comparison of spreads."""
DEGREES_MIN = 8
TREATMENTS_MIN = 3
RUNS_MAX = 5_000
"""Maximum number of runs whose spreads are checked. DRAWS samples exceed a page's memory."""
FAR_OUT_SHARE = 0.01
DRAWS = 499
SEED = 1


@dataclass(frozen=True)
class Spread:
    """Standard deviation of the noisiest level relative to the pooled deviation of the others.

    `p` is the p value of the hypothesis that all levels have the same spread.
    """

    ratio: float
    noisiest: Hashable
    p: float


def spread_between(fit: Fit, levels: Sequence[Hashable], draws: int = DRAWS) -> Spread | Unanswered:
    """Test whether the spread of the errors differs between `levels`.

    `levels` has one entry per run, in the order of the fit.
    """
    return spreads_between(fit, {"": levels}, draws)[""]


def spreads_between(
    fit: Fit, factors: Mapping[str, Sequence[Hashable]], draws: int = DRAWS
) -> dict[str, Spread | Unanswered]:
    """Return `spread_between` for each factor. The samples are drawn only once."""
    residuals = _scaled_residuals(fit)
    if not isinstance(residuals, np.ndarray):
        return dict.fromkeys(factors, residuals)
    refusal: Unanswered | None = None
    if fit.run_count > RUNS_MAX:
        refusal = NotComputable(f"{fit.run_count} runs; spreads are checked up to {RUNS_MAX} runs")
    elif len(fit.treatments) < TREATMENTS_MIN:
        refusal = NotComputable(
            "two treatments have one residual per block, so their spreads are equal"
        )
    if refusal is not None:
        return dict.fromkeys(factors, refusal)
    rng = np.random.default_rng(SEED)
    errors = rng.choice(residuals, (draws, fit.run_count))
    # This equals errors @ projection, without the runs × runs matrix of the projection.
    drawn_residuals = centred(errors.T, fit.block_of_run).T
    drawn_residuals -= (errors @ fit.design) @ fit.covariance_base @ fit.design.T
    squares = np.square(drawn_residuals, out=drawn_residuals)
    return {name: _spread(fit, levels, squares) for name, levels in factors.items()}


def _spread(fit: Fit, levels: Sequence[Hashable], squares: FloatArray) -> Spread | Unanswered:
    """Test whether the spread differs between the levels of one factor.

    `squares`, shape (draws, runs), are the squared drawn residuals.
    """
    level_index = {level: index for index, level in enumerate(dict.fromkeys(levels))}
    if len(level_index) < 2:
        return NotComputable("only one level, so there is nothing to compare")
    membership = np.zeros((fit.run_count, len(level_index)))
    membership[np.arange(fit.run_count), [level_index[level] for level in levels]] = 1.0
    fewest_runs = int(membership.sum(axis=0).min())
    if fewest_runs < LEVEL_RUNS_MIN:
        return TooFew(fewest_runs, LEVEL_RUNS_MIN, "runs per level to compare spreads")
    mixing = _mixing(fit, membership)
    if np.linalg.matrix_rank(mixing) < len(level_index):
        return NotComputable("the design cannot separate the levels' spreads")
    ratios, noisiest = _noisiest(fit.residuals[None, :] ** 2, membership, mixing)
    if not np.isfinite(ratios[0]):
        return NotComputable("only one level's runs scatter")
    draw_count = squares.shape[0]
    larger = int(np.sum(_noisiest(squares, membership, mixing)[0] >= ratios[0]))
    ratio = float(np.sqrt(ratios[0]))
    return Spread(ratio, list(level_index)[int(noisiest[0])], (larger + 1) / (draw_count + 1))


def _mixing(fit: Fit, member: FloatArray) -> FloatArray:
    """Return the weight of each level in each level's expected sum of squared residuals.

    The result has shape (levels, levels). The matrix 1 − B − D C Dᵀ turns errors into residuals: B
    computes the block means, and D is the centred design. The weights are sums of its squared
    entries over pairs of levels. Expanding the product avoids the runs × runs matrix; only matrices
    of blocks × columns and columns × columns are needed.
    """
    groups = [np.flatnonzero(in_level) for in_level in member.T]
    base, blocks, sizes = fit.covariance_base, fit.block_count, fit.block_sizes
    runs_in_block, design_in_block, shared = [], [], []
    for group in groups:
        rows, block = fit.design[group], fit.block_of_run[group]
        runs_in_block.append(np.bincount(block, minlength=blocks))
        sums = [np.bincount(block, weights=column, minlength=blocks) for column in rows.T]
        design_in_block.append(np.array(sums).reshape(len(sums), blocks).T)
        shared.append(base @ (rows.T @ rows))
    mixing = np.zeros((len(groups), len(groups)))
    for first in range(len(groups)):
        weighted = (design_in_block[first] @ base) / sizes[:, None]
        for second in range(len(groups)):
            block_term = np.sum(runs_in_block[first] * runs_in_block[second] / sizes**2)
            cross_term = np.sum(weighted * design_in_block[second])
            design_term = np.sum(shared[first] * shared[second].T)
            mixing[first, second] = block_term + 2.0 * cross_term + design_term
        leverage = np.sum(runs_in_block[first] / sizes) + np.trace(shared[first])
        mixing[first, first] += len(groups[first]) - 2.0 * leverage
    return mixing


def _noisiest(
    squares: FloatArray, membership: FloatArray, mixing: FloatArray
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return, per row, the noisiest level's variance over the mean of the others, and its index.

    `squares`, shape (rows, runs), are squared residuals. A residual contains a part of every error
    in its block. `mixing` contains the weights of these parts, so the level variances are the
    solution of a linear system.
    """
    variances = np.linalg.solve(mixing, (squares @ membership).T).T
    noisiest = np.argmax(variances, axis=1)
    highest_variance = variances[np.arange(variances.shape[0]), noisiest]
    others_mean = (variances.sum(axis=1) - highest_variance) / (variances.shape[1] - 1)
    ratios = np.full(highest_variance.shape, np.inf)
    np.divide(highest_variance, others_mean, out=ratios, where=others_mean > 0)
    return ratios, noisiest


@dataclass(frozen=True)
class FarOut:
    """The run with the largest residual in standard deviations, and the threshold for outliers."""

    run: int
    size: float
    limit: float


def far_out(fit: Fit) -> FarOut | None | Unanswered:
    """Return the run (index in the fit) whose residual is an outlier, or None."""
    residuals = _scaled_residuals(fit)
    if not isinstance(residuals, np.ndarray):
        return residuals
    sizes = np.abs(residuals) / np.sqrt(fit.variance)
    run = int(np.argmax(sizes))
    # The error estimate includes this run, so its squared residual over the sum is a beta variable.
    share = 1.0 - (1.0 - FAR_OUT_SHARE) ** (1.0 / fit.run_count)
    largest = float(special.betainccinv(0.5, (fit.degrees - 1) / 2.0, share))
    limit = float(np.sqrt(fit.degrees * largest))
    return FarOut(run, float(sizes[run]), limit) if sizes[run] > limit else None


@dataclass(frozen=True)
class SerialCorrelation:
    """Lag-one correlation of the residuals in run order, with its two-sided p-value."""

    correlation: float
    p: float


def serial_correlation(
    fit: Fit, order: Sequence[float] | FloatArray
) -> SerialCorrelation | Unanswered:
    """Test whether the residuals of neighbours in `order` are correlated.

    `order` has one position per run. The residuals of a fit are correlated even if the errors are
    not. The design determines this expected correlation, which is subtracted.
    """
    residuals = _scaled_residuals(fit)
    if not isinstance(residuals, np.ndarray):
        return residuals
    places = np.argsort(np.asarray(order, dtype=np.float64), kind="stable")
    ordered = fit.residuals[places]
    correlation = float(ordered[1:] @ ordered[:-1] / (ordered @ ordered))
    trace, square = _lag_one_traces(fit, places)
    # Moments of a ratio of quadratic forms whose denominator is independent of the ratio.
    mean = trace / fit.degrees
    second_moment = (2.0 * square + trace**2) / (fit.degrees * (fit.degrees + 2.0))
    deviation = (correlation - mean) / np.sqrt(max(second_moment - mean**2, 1e-12))
    return SerialCorrelation(correlation - mean, float(2.0 * special.ndtr(-abs(deviation))))


def _lag_one_traces(fit: Fit, places: NDArray[np.int64]) -> tuple[float, float]:
    """Return the traces of P L and of P L P L.

    P = 1 − B − D C Dᵀ turns errors into residuals: B computes the block means, and D is the centred
    design, with the runs in the order of `places`. L has ½ next to its diagonal, so it averages
    neighbours. Expanding the products avoids the runs × runs matrix; only matrices of blocks ×
    columns and columns × columns are needed.
    """
    design, base = fit.design[places], fit.covariance_base
    block, sizes = fit.block_of_run[places], fit.block_sizes
    neighbour_means = np.zeros_like(design)  # L D, the mean of each row's neighbours
    neighbour_means[:-1] += 0.5 * design[1:]
    neighbour_means[1:] += 0.5 * design[:-1]
    # Sum of the entries of L for each pair of blocks that contain neighbouring runs.
    forward = block[:-1] * sizes.size + block[1:]
    backward = block[1:] * sizes.size + block[:-1]
    pair, count = np.unique(np.concatenate([forward, backward]), return_counts=True)
    first, second = pair // sizes.size, pair % sizes.size
    pair_weight = 0.5 * count
    same_block = first == second
    sums = [
        np.bincount(block, weights=column, minlength=sizes.size) for column in neighbour_means.T
    ]
    neighbour_sums = np.array(sums).reshape(len(sums), sizes.size).T
    within = base @ (design.T @ neighbour_means)
    trace = -float(np.sum(pair_weight[same_block] / sizes[first[same_block]])) - float(
        np.trace(within)
    )
    square = 0.5 * (block.size - 1)
    square -= 2.0 * (
        _neighbours_squared(block, sizes)
        + float(np.sum(base * (neighbour_means.T @ neighbour_means)))
    )
    square += float(np.sum(pair_weight**2 / (sizes[first] * sizes[second])))
    square += 2.0 * float(np.sum((neighbour_sums @ base) * neighbour_sums / sizes[:, None]))
    return trace, square + float(np.sum(within * within.T))


def _neighbours_squared(block: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    """Return the trace of B L L.

    For each run and block, the sum of L is squared and divided by the size of the block.
    """
    shares = 1.0 / sizes[block]
    single_terms = 0.25 * (shares[:-1].sum() + shares[1:].sum())
    same_block = block[:-2] == block[2:]
    return float(single_terms + 0.5 * np.sum(shares[:-2][same_block]))


def _scaled_residuals(fit: Fit) -> FloatArray | Unanswered:
    """Return the residuals, shape (runs,), scaled to equal variance.

    Their variances are equal if the variances of the errors are equal.
    """
    if fit.degrees < DEGREES_MIN:
        return TooFew(fit.degrees, DEGREES_MIN, "degrees of freedom to check the errors")
    if not fit.variance > 0:
        return NotComputable("the runs do not scatter")
    leverage = np.einsum("ij,ij->i", fit.design @ fit.covariance_base, fit.design)
    freedom = 1.0 - 1.0 / fit.block_sizes[fit.block_of_run] - leverage
    return np.where(freedom > 1e-9, fit.residuals / np.sqrt(np.maximum(freedom, 1e-9)), 0.0)
