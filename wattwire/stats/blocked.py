"""Fit a log-scale linear model within blocks, and estimate ratios with t intervals.

What it computes: geometric-mean ratios between levels of one factor, from one positive number per
run.
How: ordinary least squares on log(response) with fixed block effects. The block effects are removed
by centring every column and the response within each block. This does not change the estimates and
allows any number of blocks. With two or more blocks, each treatment has a mean, and a contrast has
the error of its own treatments, or of its own value in each block (`contrast_errors.py`). One block
has no repetition, so the model then has only main effects. The other factors serve as replication,
their interactions are part of the error, and the error is pooled over treatments.
What it misses: with one block, interactions and drift are confounded with the effects.
Reference: Montgomery, Design and Analysis of Experiments, ch. 4 (blocks, incomplete blocks through
the general linear model); Frisch & Waugh 1933, Econometrica 1:387, and Lovell 1963, JASA 58:993
(partialled-out effects); Searle, Linear Models, ch. 5 (estimable functions); Dunn 1961, JASA 56:52
(Bonferroni's simultaneous intervals).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.contrast_errors import of_blocks, of_treatments
from wattwire.stats.results import Interval, NotComputable, NotPositive, TooFew

FloatArray = NDArray[np.float64]
Level = Hashable

RANDOM, GROUPED = "random", "grouped"
"""Order of the runs of a block: random, or with the levels of one factor next to each other."""

# A residual below this share of the data's spread is a rounding error.
RELATIVE_ZERO = 1e-9
# Eigenvalues of the scaled XᵀX below this share of the largest indicate dependent columns.
RELATIVE_RANK = 1e-10
# A column is constant within every block if its centred length is below this share of its length.
RELATIVE_CONSTANT = 1e-9
# Maximum size of a design. Larger designs take minutes, or all memory of a machine.
COLUMNS_MAX = 2_000
DESIGN_MAX = 30_000_000


@dataclass(frozen=True)
class Fit:
    """A fitted block model, from which contrasts are computed.

    `design` has shape (runs, columns) and is centred within blocks. It has a column per treatment
    (or per level of each factor) and per covariate. `residuals` and `block_of_run` have shape
    (runs,), in input order; blocks are numbered from 0. `block_sizes`, shape (blocks,), has the
    number of runs per block. `kind` is "treatments" (a mean per treatment) or "main effects".
    `scale` is "log" or "plain" (untransformed) and applies to residuals and variance. `variance` is
    pooled over treatments, with `degrees`. `treatment_of_run`, shape (runs,), is the index in
    `treatments`. `order` is RANDOM or GROUPED, and determines the error of a contrast.
    `runs_of_value`, shape (values,), is the number of runs of which each value of the fit is the
    mean; it is None if each value is that of a run.
    """

    design: FloatArray
    coefficients: FloatArray
    residuals: FloatArray
    covariance_base: FloatArray
    variance: float
    degrees: int
    kind: str
    block_of_run: NDArray[np.int64]
    block_sizes: NDArray[np.int64]
    factors: dict[str, tuple[Level, ...]]
    treatments: tuple[tuple[Level, ...], ...]
    treatment_of_run: NDArray[np.int64]
    scale: str = "log"
    order: str = RANDOM
    runs_of_value: NDArray[np.int64] | None = None

    @property
    def is_averaged(self) -> bool:
        """Return whether runs of the same treatment and block are averaged."""
        return self.runs_of_value is not None

    @property
    def block_count(self) -> int:
        """Return the number of blocks in the fit."""
        return int(self.block_sizes.size)

    @property
    def run_count(self) -> int:
        """Return the number of values in the fit, one per run unless runs are averaged."""
        return int(self.design.shape[0])

    @cached_property
    def linked(self) -> FloatArray:
        """Return the projection on estimable contrasts, shape (columns, columns).

        The projection does not change the weights of an estimable contrast.
        """
        return np.asarray(self.design.T @ self.design @ self.covariance_base, dtype=np.float64)

    @cached_property
    def residual_shares(self) -> FloatArray:
        """Return the share of each run's error that its residual keeps, shape (runs,)."""
        leverage = np.einsum("ij,ij->i", self.design @ self.covariance_base, self.design)
        return np.asarray(1.0 - 1.0 / self.block_sizes[self.block_of_run] - leverage)


@dataclass(frozen=True)
class Contrast:
    """A comparison of two levels of a factor.

    `strata` is the number of combinations of the other factors that have both levels. Contrasts are
    averaged over these with equal weight. It is 1 for main effects.
    """

    factor: str
    level: Level
    baseline: Level
    interval: Interval
    strata: int
    run_count: int
    block_count: int
    kind: str
    averaged: bool = False
    """Whether runs of the same treatment and block are averaged."""


class Ratio(Contrast):
    """Geometric mean of `level` divided by the geometric mean of `baseline`, with a t interval."""


Unanswered = TooFew | NotComputable


def fit_log(
    response: Sequence[float] | FloatArray,
    blocks: Sequence[Hashable],
    factors: Mapping[str, Sequence[Level]],
    covariate: Sequence[float] | FloatArray | None = None,
    order: str = RANDOM,
) -> Fit | Unanswered:
    """Fit log(response) on blocks and factors. Every sequence has one entry per run.

    `covariate`, shape (runs,) or (runs, columns), adds a slope per column, last in the design (see
    `slope`). The response is positive and finite, in any unit. Otherwise the result is
    `NotComputable` with the number of invalid runs. Blocks may be incomplete; no run is deleted.
    `order` is RANDOM or GROUPED, the order of the runs in each block.
    """
    values = np.asarray(response, dtype=np.float64)
    refusal = _refusal(values)
    if refusal is not None:
        return refusal
    return _fit(np.log(values), "log", blocks, factors, covariate, order)


def fit_plain(
    response: Sequence[float] | FloatArray,
    blocks: Sequence[Hashable],
    factors: Mapping[str, Sequence[Level]],
    covariate: Sequence[float] | FloatArray | None = None,
    order: str = RANDOM,
) -> Fit | Unanswered:
    """Fit the model of `fit_log` to the untransformed response, for differences in its unit."""
    values = np.asarray(response, dtype=np.float64)
    if values.size < 2:
        return TooFew(values.size, 2, "runs")
    not_finite = int(np.sum(~np.isfinite(values)))
    if not_finite:
        return NotComputable(f"missing or unbounded in {not_finite} of {values.size} runs")
    return _fit(values, "plain", blocks, factors, covariate, order)


def _fit(
    values: FloatArray,
    scale: str,
    blocks: Sequence[Hashable],
    factors: Mapping[str, Sequence[Level]],
    covariate: Sequence[float] | FloatArray | None,
    order: str,
) -> Fit | Unanswered:
    names = [name for name, levels in factors.items() if len(set(levels)) > 1]
    rows = list(zip(*(factors[name] for name in names), strict=True)) or [()] * len(values)
    treatments = tuple(dict.fromkeys(rows))
    block_numbers = {name: number for number, name in enumerate(dict.fromkeys(blocks))}
    block_of_run = np.array([block_numbers[name] for name in blocks], dtype=np.int64)
    levels = {name: tuple(dict.fromkeys(factors[name])) for name in names}
    if len(treatments) > COLUMNS_MAX or len(treatments) * len(values) > DESIGN_MAX:
        return NotComputable(
            f"{len(values)} runs of {len(treatments)} treatments exceed the maximum size of a model"
        )
    if len(block_numbers) > 1:
        kind, columns = "treatments", _indicators(rows, treatments)
    else:
        kind = "main effects"
        columns = _main_effects(rows, names, levels)
    if covariate is not None:
        covariates = np.asarray(covariate, dtype=np.float64).reshape(len(values), -1)
        columns = np.hstack([columns, covariates])
    number_of = {treatment: number for number, treatment in enumerate(treatments)}
    treatment_of_run = np.array([number_of[row] for row in rows], dtype=np.int64)
    fit = _solve(values, columns, kind, block_of_run, levels, treatments, treatment_of_run, scale)
    return replace(fit, order=order)


def within_treatments(fit: Fit) -> Fit:
    """Return the fit of a mean per treatment to the residuals of a fit with one block.

    Its residuals contain no interactions. The treatments replace the blocks, so that no column per
    treatment is needed.
    """
    treatment = fit.treatment_of_run
    residuals = centred(fit.residuals[:, None], treatment)[:, 0]
    degrees = fit.run_count - len(fit.treatments)
    return replace(
        fit,
        design=np.zeros((fit.run_count, 0)),
        coefficients=np.zeros(0),
        covariance_base=np.zeros((0, 0)),
        residuals=residuals,
        variance=float(residuals @ residuals) / degrees if degrees > 0 else float("nan"),
        degrees=degrees,
        block_of_run=treatment,
        block_sizes=np.bincount(treatment),
    )


def cell_means(values: FloatArray, cells: Sequence[Hashable], scale: str) -> FloatArray:
    """Return the mean of each cell, geometric on the scale "log", shape (cells,).

    `cells` has the cell of each value; cells are in the order of their first values.
    """
    numbers: dict[Hashable, int] = {}
    cell = np.array([numbers.setdefault(name, len(numbers)) for name in cells], dtype=np.int64)
    is_log = scale == "log"
    means = np.bincount(cell, np.log(values) if is_log else values) / np.bincount(cell)
    return np.asarray(np.exp(means) if is_log else means, dtype=np.float64)


def centred(matrix: FloatArray, block_of_run: NDArray[np.int64]) -> FloatArray:
    """Return `matrix`, shape (runs, columns), with each column centred within each block."""
    sizes = np.bincount(block_of_run)
    result = np.empty_like(matrix)
    for index, column in enumerate(matrix.T):
        means = np.bincount(block_of_run, weights=column) / sizes
        result[:, index] = column - means[block_of_run]
    return result


def _refusal(values: FloatArray) -> Unanswered | None:
    if values.size < 2:
        return TooFew(values.size, 2, "runs")
    unbounded = int(np.sum(np.isposinf(values)))
    if unbounded:
        return NotComputable(f"unbounded in {unbounded} of {values.size} runs (loss)")
    missing = int(np.sum(~np.isfinite(values)))
    if missing:
        return NotComputable(f"missing in {missing} of {values.size} runs")
    not_positive = int(np.sum(values <= 0))
    if not_positive:
        reason = f"zero or negative in {not_positive} of {values.size} runs"
        return NotPositive(reason, not_positive, values.size)
    return None


def _indicators(rows: Sequence[Hashable], names: Sequence[Hashable]) -> FloatArray:
    column_of = {name: column for column, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)))
    for row, name in enumerate(rows):
        matrix[row, column_of[name]] = 1.0
    return matrix


def _main_effects(
    rows: Sequence[tuple[Level, ...]], names: Sequence[str], levels: Mapping[str, Sequence[Level]]
) -> FloatArray:
    columns = [
        _indicators([row[index] for row in rows], levels[name]) for index, name in enumerate(names)
    ]
    return np.hstack(columns) if columns else np.zeros((len(rows), 0))


def _solve(
    values: FloatArray,
    columns: FloatArray,
    kind: str,
    block_of_run: NDArray[np.int64],
    levels: dict[str, tuple[Level, ...]],
    treatments: tuple[tuple[Level, ...], ...],
    treatment_of_run: NDArray[np.int64],
    scale: str,
) -> Fit:
    design = centred(columns, block_of_run)
    centred_length, full_length = (
        np.sqrt(np.einsum("ij,ij->j", matrix, matrix)) for matrix in (design, columns)
    )
    design[:, centred_length <= RELATIVE_CONSTANT * full_length] = 0.0
    gram_inverse, rank = _pseudo_inverse(design.T @ design)
    centred_values = centred(values[:, None], block_of_run)[:, 0]
    coefficients = gram_inverse @ (design.T @ centred_values)
    residuals = centred_values - design @ coefficients
    block_sizes = np.bincount(block_of_run)
    degrees = len(values) - block_sizes.size - rank
    largest = float(np.max(np.abs(values)))
    # The logarithm of a value near 1 has the rounding error of 1; plain values may be small.
    rounding = RELATIVE_ZERO * (max(1.0, largest) if scale == "log" else largest)
    residuals = np.where(np.abs(residuals) < rounding, 0.0, residuals)
    variance = float(residuals @ residuals) / degrees if degrees > 0 else float("nan")
    return Fit(
        design,
        coefficients,
        residuals,
        gram_inverse,
        variance,
        degrees,
        kind,
        block_of_run,
        block_sizes,
        levels,
        treatments,
        treatment_of_run,
        scale,
    )


def _pseudo_inverse(gram: FloatArray) -> tuple[FloatArray, int]:
    """Return a generalised inverse of XᵀX and its rank. Columns are scaled to equal length."""
    length = np.sqrt(np.diag(gram))
    length = np.where(length > 0, length, 1.0)
    if gram.size == 0 or not np.any(gram):
        return np.zeros_like(gram), 0
    values, vectors = np.linalg.eigh(gram / np.outer(length, length))
    independent = values > RELATIVE_RANK * float(np.max(values))
    inverse = (vectors[:, independent] / values[independent]) @ vectors[:, independent].T
    return np.asarray(inverse / np.outer(length, length), dtype=np.float64), int(independent.sum())


def ratio(
    fit: Fit,
    factor: str,
    level: Level,
    baseline: Level,
    confidence: float = 0.95,
    within: tuple[str, Level] | None = None,
    names: tuple[str, str] | None = None,
) -> Ratio | Unanswered:
    """Return the geometric-mean ratio of `level` to `baseline`, with an interval at `confidence`.

    `within` = (other factor, its level) restricts the average to combinations at that level. It
    requires a mean per treatment, and therefore at least two blocks. `names` are the names of the
    two levels in error reasons. Raise ValueError for a fit that is not on the log scale.
    """
    if fit.scale != "log":
        raise ValueError(f"fit: found the {fit.scale} scale; allowed: the log scale, for ratios")
    contrast = contrast_of(fit, factor, (level, baseline), within, names)
    if not isinstance(contrast, tuple):
        return contrast
    weights, strata = contrast
    if not contrast_error(fit, weights)[0] > 0:
        estimate = float(np.exp(weights @ fit.coefficients))
        upper, lower = names or (level, baseline)
        return NotComputable(
            f"the ratio of {upper} to {lower} is {estimate:.3g} without scatter between runs, so "
            "its error is unknown"
        )
    interval = _exponential_interval(fit, weights, confidence)
    return Ratio(
        factor, level, baseline, interval, strata, *runs_and_blocks(fit, weights), fit.kind,
        fit.is_averaged,
    )  # fmt: skip


def treatment_ratio(
    fit: Fit,
    pairs: Sequence[tuple[tuple[Level, ...], tuple[Level, ...]]],
    confidence: float,
    times: float = 1.0,
) -> Interval | Unanswered:
    """Return `times` × the ratio of the first to the second treatment, averaged over `pairs`.

    Unlike those of `ratio`, the treatments of a pair may differ in several factors. Each is an
    entry of `fit.treatments`, and all pairs have equal weight. `times` is a known constant, so the
    interval is multiplied by it. Raise ValueError for a fit that is not on the log scale, and
    without pairs.
    """
    if fit.scale != "log" or not pairs:
        raise ValueError(
            f"fit, pairs: found the {fit.scale} scale, {len(pairs)} pairs; allowed: the log scale, "
            "1 or more pairs"
        )
    if fit.kind != "treatments":
        return TooFew(fit.block_count, 2, "blocks to separate one treatment from another")
    column_of = {treatment: column for column, treatment in enumerate(fit.treatments)}
    weights = np.zeros(fit.design.shape[1])
    for upper, lower in pairs:
        weights[column_of[upper]] += 1.0 / len(pairs)
        weights[column_of[lower]] -= 1.0 / len(pairs)
    if not is_estimable(fit, weights):
        return NotComputable("no block has both treatments")
    if fit.degrees < 1:
        return TooFew(fit.run_count, fit.run_count - fit.degrees + 1, "runs for an error estimate")
    if not contrast_error(fit, weights)[0] > 0:
        return NotComputable("there is no scatter between runs, so the error is unknown")
    ratio = _exponential_interval(fit, weights, confidence)
    estimate, low, high = (times * limit for limit in (ratio.estimate, ratio.low, ratio.high))
    return replace(ratio, estimate=estimate, low=low, high=high)


def contrast_of(
    fit: Fit,
    factor: str,
    levels: tuple[Level, Level],
    within: tuple[str, Level] | None = None,
    names: tuple[str, str] | None = None,
) -> tuple[FloatArray, int] | Unanswered:
    """Return the `contrast_weights` of two levels, or the reason why they cannot be compared."""
    if within is not None and fit.kind != "treatments":
        return TooFew(fit.block_count, 2, "blocks to separate one treatment from another")
    level, baseline = levels
    upper, lower = names or (f"{factor} = {level}", f"{factor} = {baseline}")
    if factor not in fit.factors:  # a factor with values at one level is not in the model
        return NotComputable(f"at most one of {upper} and {lower} has a value")
    for required, name in ((level, upper), (baseline, lower)):
        if required not in fit.factors.get(factor, ()):
            return NotComputable(f"no run of {name} has a value")
    weights, strata = contrast_weights(fit, factor, level, baseline, within)
    if strata == 0:
        return NotComputable(f"{upper} and {lower} share no combination of the other factors")
    if not is_estimable(fit, weights):
        return NotComputable(_not_linked(fit, factor, upper, lower))
    if fit.degrees < 1:
        return TooFew(fit.run_count, fit.run_count - fit.degrees + 1, "runs for an error estimate")
    return weights, strata


def _not_linked(fit: Fit, factor: str, upper: str, lower: str) -> str:
    """Return the reason why a contrast is confounded with other factors or blocks."""
    factor_index = list(fit.factors).index(factor)
    confounded = [factor.removeprefix("settings.")]
    for other_index, other in enumerate(fit.factors):
        pairs = {(treatment[factor_index], treatment[other_index]) for treatment in fit.treatments}
        if other_index != factor_index and len(pairs) == len(fit.factors[factor]) == len(
            fit.factors[other]
        ):
            confounded.append(other.removeprefix("settings."))
    if len(confounded) == 1:
        return f"{upper} and {lower} share no block, directly or through other levels"
    names = f"{', '.join(confounded[:-1])} and {confounded[-1]}"
    return f"{upper} and {lower} cannot be separated: {names} always change together"


def contrast_weights(
    fit: Fit, factor: str, level: Level, baseline: Level, within: tuple[str, Level] | None
) -> tuple[FloatArray, int]:
    """Return a contrast's weights on the coefficients, shape (columns,), and the strata count.

    `within` averages over the combinations that occur at every level of its factor, as `_at_level`
    selects them. In a fractional factorial, no treatments differ in one factor alone. If both
    levels have each level of the other factors equally often, the contrast is the main effect,
    which includes interactions of the other factors.
    """
    weights = np.zeros(fit.design.shape[1])
    if fit.kind == "main effects":
        offset = 0
        for name, levels in fit.factors.items():
            if name == factor:
                weights[offset + levels.index(level)] += 1.0
                weights[offset + levels.index(baseline)] -= 1.0
            offset += len(levels)
        return weights, 1
    factor_index = list(fit.factors).index(factor)
    column_of = {treatment: column for column, treatment in enumerate(fit.treatments)}
    sides = {}
    for treatment, column in column_of.items():
        partner = (*treatment[:factor_index], baseline, *treatment[factor_index + 1 :])
        if treatment[factor_index] == level and partner in column_of:
            sides[treatment] = (column, column_of[partner])
    pairs = [sides[treatment] for treatment in _at_level(fit, list(sides), within)]
    if not pairs and within is None:
        pairs = _balanced_pairs(fit.treatments, factor_index, level, baseline)
    for upper, lower in pairs:
        weights[upper] += 1.0 / len(pairs)
        weights[lower] -= 1.0 / len(pairs)
    return weights, len(pairs)


def _at_level(
    fit: Fit, treatments: Sequence[tuple[Level, ...]], within: tuple[str, Level] | None
) -> list[tuple[Level, ...]]:
    """Return the treatments at the level of `within`, a factor and its level.

    If some combinations of the other factors lack a level of this factor, return only those that
    have every level. Otherwise, the levels would differ because they average other combinations.
    """
    if within is None or within[0] not in fit.factors:
        return list(treatments)
    index = list(fit.factors).index(within[0])
    combinations: dict[Level, dict[tuple[Level, ...], tuple[Level, ...]]] = {}
    for treatment in treatments:
        rest = (*treatment[:index], *treatment[index + 1 :])
        combinations.setdefault(treatment[index], {})[rest] = treatment
    common = set.intersection(*map(set, combinations.values())) if combinations else set()
    at_level = combinations.get(within[1], {})
    return [t for rest, t in at_level.items() if rest in common] or list(at_level.values())


def _balanced_pairs(
    treatments: Sequence[tuple[Level, ...]], factor_index: int, level: Level, baseline: Level
) -> list[tuple[int, int]]:
    """Return the treatments at both levels, if each other factor has the same levels at both."""
    upper, lower = (
        [column for column, treatment in enumerate(treatments) if treatment[factor_index] == side]
        for side in (level, baseline)
    )
    for index in range(len(treatments[0])):
        counts = [Counter(treatments[column][index] for column in side) for side in (upper, lower)]
        if index != factor_index and counts[0] != counts[1]:
            return []
    return list(zip(upper, lower, strict=True)) if len(upper) == len(lower) else []


def is_within(fit: Fit, treatment: tuple[Level, ...], within: tuple[str, Level] | None) -> bool:
    """Return whether a treatment has the level of `within`, a factor and its level."""
    if within is None or within[0] not in fit.factors:
        return True
    return treatment[list(fit.factors).index(within[0])] == within[1]


def is_estimable(fit: Fit, weights: FloatArray) -> bool:
    """Return whether the contrast `weights` is estimable in the design."""
    return bool(np.allclose(fit.linked @ weights, weights, atol=1e-7))


def slope(fit: Fit, step: float, confidence: float = 0.95) -> Interval | Unanswered:
    """Return the factor by which the response changes if the covariate increases by `step`.

    The fit needs a covariate, such as the position in run order to detect carry-over and drift.
    """
    weights = np.zeros(fit.design.shape[1])
    weights[-1] = step
    if not is_estimable(fit, weights):
        return NotComputable("the covariate does not vary within the blocks")
    if fit.degrees < 1:
        return TooFew(fit.run_count, fit.run_count - fit.degrees + 1, "runs for an error estimate")
    return _exponential_interval(fit, weights, confidence)


def contrast_interval(fit: Fit, weights: FloatArray, confidence: float) -> Interval:
    """Return a contrast with its t interval, on the scale of the fit."""
    return interval_with(fit, weights, confidence, *contrast_error(fit, weights))


def interval_with(
    fit: Fit, weights: FloatArray, confidence: float, error: float, degrees: float
) -> Interval:
    """Return a contrast with the t interval of a standard `error` with `degrees` of freedom."""
    centre = float(weights @ fit.coefficients)
    count = int(np.count_nonzero(influence_of_runs(fit, weights)))
    margin = float(special.stdtrit(degrees, 0.5 + confidence / 2)) * error
    return Interval(
        centre, centre - margin, centre + margin, confidence, count,
        f"t, {fit.scale} scale, {fit.kind}", float(degrees),
    )  # fmt: skip


def contrast_error(fit: Fit, weights: FloatArray) -> tuple[float, float]:
    """Return the standard error of a contrast on the scale of the fit, and its degrees of freedom.

    The error is NaN without degrees of freedom. It is pooled over treatments if a treatment has no
    mean of its own, which is the case for several factors in one block.
    """
    if fit.degrees < 1:
        return float("nan"), 0.0
    if fit.kind == "main effects" and len(fit.factors) > 1:
        return pooled_error(fit, weights)
    influence = influence_of_runs(fit, weights)
    if fit.order == GROUPED and fit.block_count > 1:
        variance, degrees = of_blocks(influence, fit.residuals, fit.block_of_run)
    else:
        variance, degrees = of_treatments(
            influence, fit.residuals, fit.residual_shares, fit.treatment_of_run
        )
    return float(np.sqrt(variance)), degrees


def influence_of_runs(fit: Fit, weights: FloatArray) -> FloatArray:
    """Return the derivative of a contrast with respect to each run's value, shape (runs,).

    Runs without influence are exactly 0, because they must not add their variance or degrees of
    freedom by rounding errors.
    """
    influence = fit.design @ (fit.covariance_base @ weights)
    rounding = RELATIVE_ZERO * float(np.max(np.abs(influence), initial=0.0))
    return np.where(np.abs(influence) <= rounding, 0.0, influence)


def runs_and_blocks(fit: Fit, weights: FloatArray) -> tuple[int, int]:
    """Return the number of runs that decide a contrast, and of their blocks."""
    has_influence = influence_of_runs(fit, weights) != 0.0
    runs = np.ones(fit.run_count) if fit.runs_of_value is None else fit.runs_of_value
    return int(runs[has_influence].sum()), len(np.unique(fit.block_of_run[has_influence]))


def repeat_limit(fit: Fit, treatment: tuple[Level, ...], confidence: float) -> float:
    """Return the limit of the difference of two runs of a treatment in a block, on the fit's scale.

    It comes from the treatment's own variance, because treatments scatter differently. It is NaN
    without degrees of freedom.
    """
    if fit.degrees < 1:
        return float("nan")
    influence = np.zeros(fit.run_count)
    influence[fit.treatment_of_run == fit.treatments.index(treatment)] = 1.0
    influence /= np.sqrt(influence.sum())
    variance, degrees = of_treatments(
        influence, fit.residuals, fit.residual_shares, fit.treatment_of_run
    )
    return float(special.stdtrit(degrees, 0.5 + confidence / 2) * np.sqrt(2.0 * variance))


def pooled_error(fit: Fit, weights: FloatArray) -> tuple[float, float]:
    """Return the standard error of a contrast from the pooled variance, and its degrees."""
    variance = fit.variance * float(weights @ fit.covariance_base @ weights)
    return float(np.sqrt(variance)), float(fit.degrees)


def _exponential_interval(fit: Fit, weights: FloatArray, confidence: float) -> Interval:
    logs = contrast_interval(fit, weights, confidence)
    estimate, low, high = (float(np.exp(limit)) for limit in (logs.estimate, logs.low, logs.high))
    return replace(logs, estimate=estimate, low=low, high=high)


def bonferroni(confidence: float, family_size: int) -> float:
    """Return the confidence level per interval for a simultaneous level of `confidence`.

    The correction is for `family_size` intervals. Raise ValueError for a family below 1.
    """
    if family_size < 1:
        raise ValueError(f"family_size: found {family_size}; allowed: at least 1")
    return 1.0 - (1.0 - confidence) / family_size


def conclusion(interval: Interval, margin: float | None) -> str:
    """Return "different", "equivalent" or "undecided".

    "Equivalent" means that the interval is within 1/(1 + margin) … 1 + margin. Without a margin,
    the result is never "equivalent".
    """
    if margin is not None and interval.within(1.0 / (1.0 + margin), 1.0 + margin):
        return "equivalent"
    return "different" if interval.excludes(1.0) else "undecided"


def geometric_mean(
    values: Sequence[float] | FloatArray, confidence: float = 0.95
) -> Interval | Unanswered:
    """Return the geometric mean of run summaries with a t interval on the log scale.

    At least three runs are required; the t interval has its nominal coverage from n = 3.
    """
    data = np.asarray(values, dtype=np.float64)
    refusal = _refusal(data) if data.size >= 3 else TooFew(data.size, 3, "runs")
    if refusal is not None:
        return refusal
    logs = np.log(data)
    half_width = float(special.stdtrit(data.size - 1, 0.5 + confidence / 2)) * float(
        np.std(logs, ddof=1) / np.sqrt(data.size)
    )
    centre = float(np.mean(logs))
    return Interval(
        float(np.exp(centre)),
        float(np.exp(centre - half_width)),
        float(np.exp(centre + half_width)),
        confidence,
        int(data.size),
        "t, log scale",
        float(data.size - 1),
    )


def mean_interval(
    values: Sequence[float] | FloatArray, confidence: float = 0.95
) -> Interval | float:
    """Return the mean of run summaries, with a t interval if there are at least three.

    What it misses: skew. For ratios and latencies, the geometric mean describes the centre better.
    Raise ValueError for an empty input.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        raise ValueError("values: found none; allowed: at least one")
    centre = float(np.mean(data))
    if data.size < 3:
        return centre
    half_width = float(special.stdtrit(data.size - 1, 0.5 + confidence / 2)) * float(
        np.std(data, ddof=1) / np.sqrt(data.size)
    )
    return Interval(
        centre,
        centre - half_width,
        centre + half_width,
        confidence,
        int(data.size),
        "t over runs",
        float(data.size - 1),
    )
