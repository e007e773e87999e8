"""Do the errors of a block model look as its intervals take them to be?

What: whether levels of a factor scatter unequally, whether single runs stand far out, and whether
neighbours in the order of execution resemble each other.
How: residuals of the fitted model. Spread: each level's own error variance from the squares of the
residuals, solved for what a block's runs share of each other's errors; p is the share of samples
drawn from all residuals alike that give as large a ratio (seeded). Far out: the largest residual
against the size that FAR_OUT_SHARE of normal samples of that many runs exceed. Order: the lag-one
correlation in execution order against its normal limit.
What it misses: with two treatments both have one and the same residual in every block, so their
spread cannot be told apart, nor need it be: their contrast is one difference a block. Few runs
see little: silence proves nothing.
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
"""Runs a level below which its spread is not compared."""
DEGREES_MIN = 8
TREATMENTS_MIN = 3
RUNS_MAX = 5_000
"""Beyond it the drawn samples, DRAWS of as many runs, take more memory than a page may."""
FAR_OUT_SHARE = 0.01
DRAWS = 499
SEED = 1


@dataclass(frozen=True)
class Spread:
    """Standard deviation of the noisiest level over that of all others together, with a p."""

    ratio: float
    noisiest: Hashable
    p: float


def spread_between(fit: Fit, levels: Sequence[Hashable], draws: int = DRAWS) -> Spread | Unanswered:
    """Compare the errors' spread between `levels`, one entry per run in the fit's order."""
    return spreads_between(fit, {"": levels}, draws)[""]


def spreads_between(
    fit: Fit, factors: Mapping[str, Sequence[Hashable]], draws: int = DRAWS
) -> dict[str, Spread | Unanswered]:
    """`spread_between` for the levels of each factor, by its name; the samples are drawn once."""
    residuals = _scaled(fit)
    if not isinstance(residuals, np.ndarray):
        return dict.fromkeys(factors, residuals)
    refused: Unanswered | None = None
    if fit.run_count > RUNS_MAX:
        refused = _too_many(fit)
    elif len(fit.treatments) < TREATMENTS_MIN:
        refused = NotComputable("two treatments have one residual a block: nothing to compare")
    if refused is not None:
        return dict.fromkeys(factors, refused)
    rng = np.random.default_rng(SEED)
    errors = rng.choice(residuals, (draws, fit.run_count))
    # The same as errors @ projection, which is the unit matrix but for a few columns' worth.
    drawn = centred(errors.T, fit.block_of_run).T
    drawn -= (errors @ fit.design) @ fit.covariance_base @ fit.design.T
    squares = np.square(drawn, out=drawn)
    return {name: _spread(fit, levels, squares) for name, levels in factors.items()}


def _spread(fit: Fit, levels: Sequence[Hashable], squares: FloatArray) -> Spread | Unanswered:
    """Compare one factor's levels; `squares` are those of drawn residuals, shape (draws, runs)."""
    names = {name: place for place, name in enumerate(dict.fromkeys(levels))}
    if len(names) < 2:
        return NotComputable("one level: nothing to compare")
    member = np.zeros((fit.run_count, len(names)))
    member[np.arange(fit.run_count), [names[level] for level in levels]] = 1.0
    smallest = int(member.sum(axis=0).min())
    if smallest < LEVEL_RUNS_MIN:
        return TooFew(smallest, LEVEL_RUNS_MIN, "runs a level to compare spreads")
    mixing = _mixing(fit, member)
    if np.linalg.matrix_rank(mixing) < len(names):
        return NotComputable("the design does not part the levels' spreads")
    found, noisiest = _noisiest(fit.residuals[None, :] ** 2, member, mixing)
    if not np.isfinite(found[0]):
        return NotComputable("but for one level the runs do not scatter")
    draws = squares.shape[0]
    larger = int(np.sum(_noisiest(squares, member, mixing)[0] >= found[0]))
    ratio = float(np.sqrt(found[0]))
    return Spread(ratio, list(names)[int(noisiest[0])], (larger + 1) / (draws + 1))


def _mixing(fit: Fit, member: FloatArray) -> FloatArray:
    """What of each level's error variance the squares of each level's residuals hold, summed.

    These are the sums over pairs of levels of the squares in the matrix that turns errors into
    residuals, 1 - B - D C Dᵀ: B takes the mean of a block's runs, D is the centred design.
    Multiplied out, each sum takes matrices of blocks by columns and of columns by columns only;
    the matrix of runs by runs is never made.
    """
    groups = [np.flatnonzero(of_level) for of_level in member.T]
    base, blocks, sizes = fit.covariance_base, fit.block_count, fit.block_sizes
    runs_in_block, design_in_block, shared = [], [], []
    for group in groups:
        rows, place = fit.design[group], fit.block_of_run[group]
        runs_in_block.append(np.bincount(place, minlength=blocks))
        sums = [np.bincount(place, weights=column, minlength=blocks) for column in rows.T]
        design_in_block.append(np.array(sums).reshape(len(sums), blocks).T)
        shared.append(base @ (rows.T @ rows))
    mixing = np.zeros((len(groups), len(groups)))
    for one in range(len(groups)):
        weighted = (design_in_block[one] @ base) / sizes[:, None]
        for other in range(len(groups)):
            of_blocks = np.sum(runs_in_block[one] * runs_in_block[other] / sizes**2)
            of_both = np.sum(weighted * design_in_block[other])
            of_design = np.sum(shared[one] * shared[other].T)
            mixing[one, other] = of_blocks + 2.0 * of_both + of_design
        leverage = np.sum(runs_in_block[one] / sizes) + np.trace(shared[one])
        mixing[one, one] += len(groups[one]) - 2.0 * leverage
    return mixing


def _noisiest(
    squares: FloatArray, member: FloatArray, mixing: FloatArray
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Variance of the noisiest level over the others' mean, and which it is, for each row.

    `squares` are those of residuals, shape (rows, runs). A residual holds a part of every error
    of its block; `mixing` says how much, and solving for the levels' own variances takes that out.
    """
    variances = np.linalg.solve(mixing, (squares @ member).T).T
    highest = np.argmax(variances, axis=1)
    top = variances[np.arange(variances.shape[0]), highest]
    others = (variances.sum(axis=1) - top) / (variances.shape[1] - 1)
    ratios = np.full(top.shape, np.inf)
    np.divide(top, others, out=ratios, where=others > 0)
    return ratios, highest


@dataclass(frozen=True)
class FarOut:
    """The run with the largest residual, in standard deviations, and the limit for one."""

    run: int
    size: float
    limit: float


def far_out(fit: Fit) -> FarOut | None | Unanswered:
    """The run (place in the fit's order) that no normal error explains; None where all do."""
    residuals = _scaled(fit)
    if not isinstance(residuals, np.ndarray):
        return residuals
    sizes = np.abs(residuals) / np.sqrt(fit.variance)
    place = int(np.argmax(sizes))
    # The error was estimated with the run in it: its square over the sum is a beta variable.
    share = 1.0 - (1.0 - FAR_OUT_SHARE) ** (1.0 / fit.run_count)
    largest = float(special.betainccinv(0.5, (fit.degrees - 1) / 2.0, share))
    limit = float(np.sqrt(fit.degrees * largest))
    return FarOut(place, float(sizes[place]), limit) if sizes[place] > limit else None


@dataclass(frozen=True)
class SerialCorrelation:
    """Lag-one correlation of residuals in execution order, with its two-sided p."""

    correlation: float
    p: float


def serial_correlation(
    fit: Fit, order: Sequence[float] | FloatArray
) -> SerialCorrelation | Unanswered:
    """Whether runs next to each other in `order` (one place per run) have like residuals.

    Residuals of a fit lean against each other: the expected correlation, known from the design,
    is taken off first.
    """
    residuals = _scaled(fit)
    if not isinstance(residuals, np.ndarray):
        return residuals
    if fit.run_count > RUNS_MAX:
        return _too_many(fit)
    places = np.argsort(np.asarray(order, dtype=np.float64), kind="stable")
    ordered = fit.residuals[places]
    found = float(ordered[1:] @ ordered[:-1] / (ordered @ ordered))
    trace, square = _lag_one_traces(fit, places)
    # Moments of a ratio of quadratic forms whose denominator is independent of the ratio.
    mean = trace / fit.degrees
    second = (2.0 * square + trace**2) / (fit.degrees * (fit.degrees + 2.0))
    deviation = (found - mean) / np.sqrt(max(second - mean**2, 1e-12))
    return SerialCorrelation(found - mean, float(2.0 * special.ndtr(-abs(deviation))))


def _lag_one_traces(fit: Fit, places: NDArray[np.int64]) -> tuple[float, float]:
    """Traces of P L and of P L P L: P = 1 - B - D C Dᵀ makes residuals, L is the matrix of lag one.

    B takes the mean of a block's runs, D is the centred design, both with the runs in the order of
    `places`; L has ½ beside its diagonal. Multiplied out, each trace takes matrices of blocks by
    columns and of columns by columns only; the matrix of runs by runs is never made.
    """
    design, base = fit.design[places], fit.covariance_base
    block, sizes = fit.block_of_run[places], fit.block_sizes
    near = np.zeros_like(design)  # L D: each row gives way to the mean of its neighbours
    near[:-1] += 0.5 * design[1:]
    near[1:] += 0.5 * design[:-1]
    # What L leads from one block to another, for each pair of them that are neighbours somewhere.
    steps = block[:-1] * sizes.size + block[1:]
    back = block[1:] * sizes.size + block[:-1]
    pair, count = np.unique(np.concatenate([steps, back]), return_counts=True)
    first, second = pair // sizes.size, pair % sizes.size
    between = 0.5 * count
    own = first == second
    sums = [np.bincount(block, weights=column, minlength=sizes.size) for column in near.T]
    near_in_block = np.array(sums).reshape(len(sums), sizes.size).T
    within = base @ (design.T @ near)
    trace = -float(np.sum(between[own] / sizes[first[own]])) - float(np.trace(within))
    square = 0.5 * (block.size - 1)
    square -= 2.0 * (_neighbours_squared(block, sizes) + float(np.sum(base * (near.T @ near))))
    square += float(np.sum(between**2 / (sizes[first] * sizes[second])))
    square += 2.0 * float(np.sum((near_in_block @ base) * near_in_block / sizes[:, None]))
    return trace, square + float(np.sum(within * within.T))


def _neighbours_squared(block: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    """The trace of B L L: over the runs, what L takes from each block, squared, over its size."""
    shares = 1.0 / sizes[block]
    inner = 0.25 * (shares[:-1].sum() + shares[1:].sum())
    same = block[:-2] == block[2:]
    return float(inner + 0.5 * np.sum(shares[:-2][same]))


def _too_many(fit: Fit) -> NotComputable:
    return NotComputable(f"{fit.run_count} runs: errors are looked at up to {RUNS_MAX}")


def _scaled(fit: Fit) -> FloatArray | Unanswered:
    """Residuals of equal variance where the errors have equal variance, shape (runs,)."""
    if fit.degrees < DEGREES_MIN:
        return TooFew(fit.degrees, DEGREES_MIN, "degrees of freedom to look at the errors")
    if not fit.variance > 0:
        return NotComputable("the runs do not scatter")
    leverage = np.einsum("ij,ij->i", fit.design @ fit.covariance_base, fit.design)
    freedom = 1.0 - 1.0 / fit.block_sizes[fit.block_of_run] - leverage
    return np.where(freedom > 1e-9, fit.residuals / np.sqrt(np.maximum(freedom, 1e-9)), 0.0)
