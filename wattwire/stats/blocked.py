"""Treatments contrasted inside blocks: log-scale linear model, ratios with t intervals.

What: geometric-mean ratios between levels of one factor, from one positive number per run.
How: ordinary least squares on log(response) with fixed block effects, which are taken out by
centring every column and the response within each block (the estimates are the same, and there may
be any number of blocks). With two or more blocks each treatment has its own mean and the error is
what is left (pooled over treatments); with
one block there is no repetition, so the model has main effects only and the other factors
act as replication: their interactions stand in the error.
What it misses: unequal variances between treatments (the error is pooled); with one block,
interactions and drift, which cannot be told from the effects.
Reference: Montgomery, Design and Analysis of Experiments, ch. 4 (blocks, incomplete blocks
through the general linear model); Frisch & Waugh 1933, Econometrica 1:387, and Lovell 1963, JASA
58:993 (effects that are partialled out); Searle, Linear Models, ch. 5 (estimable functions);
Dunn 1961, JASA 56:52 (Bonferroni's simultaneous intervals).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.results import Interval, NotComputable, NotPositive, TooFew

FloatArray = NDArray[np.float64]
Level = Hashable

# Below this share of the data's own spread a residual is rounding, not error.
RELATIVE_ZERO = 1e-9
# Eigenvalues of the scaled XᵀX below this share of the largest are dependent columns.
RELATIVE_RANK = 1e-10
# A column whose centred length is below this share of its own is constant within every block.
RELATIVE_CONSTANT = 1e-9
# A design beyond either takes minutes or all of a machine's memory.
COLUMNS_MAX = 2_000
DESIGN_MAX = 30_000_000


@dataclass(frozen=True)
class Fit:
    """A fitted log-scale model, ready to be asked for contrasts.

    `design` has shape (runs, columns), a column per treatment (or per level of each factor) and per
    covariate, centred within blocks; `residuals` has shape (runs,), in input order, as
    `block_of_run`, which numbers blocks from 0; `block_sizes` has shape (blocks,), in runs.
    `kind` is "treatments" (a mean per treatment) or "main effects"; `scale` is "log" or "plain",
    and residuals and variance are on it.
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
    scale: str = "log"

    @property
    def block_count(self) -> int:
        """Number of blocks in the fit."""
        return int(self.block_sizes.size)

    @property
    def run_count(self) -> int:
        """Number of runs in the fit."""
        return int(self.design.shape[0])

    @cached_property
    def linked(self) -> FloatArray:
        """What of a contrast the design links, shape (columns, columns): all of it or it is not."""
        return np.asarray(self.design.T @ self.design @ self.covariance_base, dtype=np.float64)


@dataclass(frozen=True)
class Contrast:
    """Two levels of a factor compared.

    `strata` is the number of combinations of the other factors that hold both levels and over
    which contrasts are averaged with equal weight (1 under main effects).
    """

    factor: str
    level: Level
    baseline: Level
    interval: Interval
    strata: int
    run_count: int
    block_count: int
    kind: str


class Ratio(Contrast):
    """Geometric mean of `level` over that of `baseline`, with a t interval."""


Unanswered = TooFew | NotComputable


def fit_log(
    response: Sequence[float] | FloatArray,
    blocks: Sequence[Hashable],
    factors: Mapping[str, Sequence[Level]],
    covariate: Sequence[float] | FloatArray | None = None,
) -> Fit | Unanswered:
    """Fit log(response) on blocks and factors; every sequence has one entry per run.

    `covariate`, shape (runs,) or (runs, columns), adds a slope a column, last in the design (see
    `slope`). The response is in any unit, positive
    and finite; otherwise `NotComputable` says how many runs are not. Incomplete blocks are taken
    as they are: nothing is deleted.
    """
    values = np.asarray(response, dtype=np.float64)
    refused = _refuse(values)
    if refused is not None:
        return refused
    return _fit(np.log(values), "log", blocks, factors, covariate)


def fit_plain(
    response: Sequence[float] | FloatArray,
    blocks: Sequence[Hashable],
    factors: Mapping[str, Sequence[Level]],
) -> Fit | Unanswered:
    """The same model on the response itself, in its unit: differences instead of ratios."""
    values = np.asarray(response, dtype=np.float64)
    if values.size < 2:
        return TooFew(values.size, 2, "runs")
    bad = int(np.sum(~np.isfinite(values)))
    if bad:
        return NotComputable(f"missing or unbounded in {bad} of {values.size} runs")
    return _fit(values, "plain", blocks, factors, None)


def _fit(
    values: FloatArray,
    scale: str,
    blocks: Sequence[Hashable],
    factors: Mapping[str, Sequence[Level]],
    covariate: Sequence[float] | FloatArray | None,
) -> Fit | Unanswered:
    names = [name for name, levels in factors.items() if len(set(levels)) > 1]
    rows = list(zip(*(factors[name] for name in names), strict=True)) or [()] * len(values)
    treatments = tuple(dict.fromkeys(rows))
    block_numbers = {name: number for number, name in enumerate(dict.fromkeys(blocks))}
    block_of_run = np.array([block_numbers[name] for name in blocks], dtype=np.int64)
    levels = {name: tuple(dict.fromkeys(factors[name])) for name in names}
    if len(treatments) > COLUMNS_MAX or len(treatments) * len(values) > DESIGN_MAX:
        return NotComputable(
            f"{len(values)} runs of {len(treatments)} treatments are more than one model takes"
        )
    if len(block_numbers) > 1:
        kind, part = "treatments", _indicators(rows, treatments)
    else:
        kind = "main effects"
        part = _main_effects(rows, names, levels)
    if covariate is not None:
        last = np.asarray(covariate, dtype=np.float64).reshape(len(values), -1)
        part = np.hstack([part, last])
    return _solve(values, part, kind, block_of_run, levels, treatments, scale)


def centred(matrix: FloatArray, block_of_run: NDArray[np.int64]) -> FloatArray:
    """`matrix`, shape (runs, columns), less the mean of each column within each block."""
    sizes = np.bincount(block_of_run)
    result = np.empty_like(matrix)
    for place, column in enumerate(matrix.T):
        means = np.bincount(block_of_run, weights=column) / sizes
        result[:, place] = column - means[block_of_run]
    return result


def _refuse(values: FloatArray) -> Unanswered | None:
    if values.size < 2:
        return TooFew(values.size, 2, "runs")
    unbounded = int(np.sum(np.isposinf(values)))
    if unbounded:
        return NotComputable(f"unbounded in {unbounded} of {values.size} runs (loss)")
    missing = int(np.sum(~np.isfinite(values)))
    if missing:
        return NotComputable(f"missing in {missing} of {values.size} runs")
    bad = int(np.sum(values <= 0))
    if bad:
        why = f"zero or negative in {bad} of {values.size} runs"
        return NotPositive(why, bad, values.size)
    return None


def _indicators(rows: Sequence[Hashable], names: Sequence[Hashable]) -> FloatArray:
    where = {name: column for column, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)))
    for row, name in enumerate(rows):
        matrix[row, where[name]] = 1.0
    return matrix


def _main_effects(
    rows: Sequence[tuple[Level, ...]], names: Sequence[str], levels: Mapping[str, Sequence[Level]]
) -> FloatArray:
    parts = [_indicators([row[at] for row in rows], levels[name]) for at, name in enumerate(names)]
    return np.hstack(parts) if parts else np.zeros((len(rows), 0))


def _solve(
    values: FloatArray,
    columns: FloatArray,
    kind: str,
    block_of_run: NDArray[np.int64],
    levels: dict[str, tuple[Level, ...]],
    treatments: tuple[tuple[Level, ...], ...],
    scale: str,
) -> Fit:
    design = centred(columns, block_of_run)
    length, own = (np.sqrt(np.einsum("ij,ij->j", part, part)) for part in (design, columns))
    design[:, length <= RELATIVE_CONSTANT * own] = 0.0
    gram_inverse, rank = _pseudo_inverse(design.T @ design)
    within = centred(values[:, None], block_of_run)[:, 0]
    coefficients = gram_inverse @ (design.T @ within)
    residuals = within - design @ coefficients
    block_sizes = np.bincount(block_of_run)
    degrees = len(values) - block_sizes.size - rank
    largest = float(np.max(np.abs(values)))
    # Logs near 0 are values near 1, rounded there; plain values may all be small.
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
        scale,
    )


def _pseudo_inverse(gram: FloatArray) -> tuple[FloatArray, int]:
    """A generalised inverse of XᵀX and its rank, columns scaled to equal length first."""
    length = np.sqrt(np.diag(gram))
    length = np.where(length > 0, length, 1.0)
    if gram.size == 0 or not np.any(gram):
        return np.zeros_like(gram), 0
    values, vectors = np.linalg.eigh(gram / np.outer(length, length))
    kept = values > RELATIVE_RANK * float(np.max(values))
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return np.asarray(inverse / np.outer(length, length), dtype=np.float64), int(kept.sum())


def ratio(
    fit: Fit,
    factor: str,
    level: Level,
    baseline: Level,
    confidence: float = 0.95,
    within: tuple[str, Level] | None = None,
    names: tuple[str, str] | None = None,
) -> Ratio | Unanswered:
    """Geometric-mean ratio of `level` to `baseline`, at `confidence` for this one interval.

    `within` = (other factor, its level) averages over the combinations at that level only; it
    needs a mean per treatment, so two blocks or more. `names` are what reasons call the two
    levels. Raises ValueError for a plain fit.
    """
    if fit.scale != "log":
        raise ValueError(f"fit: {fit.scale} scale found; ratios are taken on the log scale")
    asked = contrast_of(fit, factor, (level, baseline), within, names)
    if not isinstance(asked, tuple):
        return asked
    weights, strata = asked
    if not fit.variance > 0:
        found = float(np.exp(weights @ fit.coefficients))
        upper, lower = names or (level, baseline)
        return NotComputable(
            f"{upper} to {lower} is {found:.3g} without any scatter between runs: no error to "
            "judge it by"
        )
    interval = _exponential_interval(fit, weights, confidence)
    return Ratio(
        factor, level, baseline, interval, strata, fit.run_count, fit.block_count, fit.kind
    )


def contrast_of(
    fit: Fit,
    factor: str,
    levels: tuple[Level, Level],
    within: tuple[str, Level] | None = None,
    names: tuple[str, str] | None = None,
) -> tuple[FloatArray, int] | Unanswered:
    """`contrast_weights` of two levels where the fit can give them an error, else why not."""
    if within is not None and fit.kind != "treatments":
        return TooFew(fit.block_count, 2, "blocks to separate one treatment from another")
    level, baseline = levels
    upper, lower = names or (f"{factor} = {level}", f"{factor} = {baseline}")
    for wanted, name in ((level, upper), (baseline, lower)):
        if wanted not in fit.factors.get(factor, ()):
            return NotComputable(f"no run of {name} gave a number")
    weights, strata = contrast_weights(fit, factor, level, baseline, within)
    if strata == 0:
        return NotComputable(f"{upper} and {lower} share no combination of the other factors")
    if not is_estimable(fit, weights):
        return NotComputable(_not_linked(fit, factor, upper, lower))
    if fit.degrees < 1:
        return TooFew(fit.run_count, fit.run_count - fit.degrees + 1, "runs for an error estimate")
    return weights, strata


def _not_linked(fit: Fit, factor: str, upper: str, lower: str) -> str:
    """Why the design gives no contrast: other factors change with this one, or blocks part it."""
    place = list(fit.factors).index(factor)
    together = [factor.removeprefix("settings.")]
    for at, other in enumerate(fit.factors):
        pairs = {(treatment[place], treatment[at]) for treatment in fit.treatments}
        if at != place and len(pairs) == len(fit.factors[factor]) == len(fit.factors[other]):
            together.append(other.removeprefix("settings."))
    if len(together) == 1:
        return f"{upper} and {lower} are not linked through the blocks"
    names = f"{', '.join(together[:-1])} and {together[-1]}"
    return f"{upper} and {lower} cannot be told apart by themselves: {names} always change together"


def contrast_weights(
    fit: Fit, factor: str, level: Level, baseline: Level, within: tuple[str, Level] | None
) -> tuple[FloatArray, int]:
    """The weights of a contrast on the fit's coefficients, and how many strata it averages."""
    weights = np.zeros(fit.design.shape[1])
    if fit.kind == "main effects":
        at = 0
        for name, names in fit.factors.items():
            if name == factor:
                weights[at + names.index(level)] += 1.0
                weights[at + names.index(baseline)] -= 1.0
            at += len(names)
        return weights, 1
    place = list(fit.factors).index(factor)
    where = {treatment: i for i, treatment in enumerate(fit.treatments)}
    pairs = []
    for treatment, column in where.items():
        if treatment[place] != level or not _held(fit, treatment, within):
            continue
        partner = (*treatment[:place], baseline, *treatment[place + 1 :])
        if partner in where:
            pairs.append((column, where[partner]))
    for upper, lower in pairs:
        weights[upper] += 1.0 / len(pairs)
        weights[lower] -= 1.0 / len(pairs)
    return weights, len(pairs)


def _held(fit: Fit, treatment: tuple[Level, ...], within: tuple[str, Level] | None) -> bool:
    if within is None or within[0] not in fit.factors:
        return True
    return treatment[list(fit.factors).index(within[0])] == within[1]


def is_estimable(fit: Fit, weights: FloatArray) -> bool:
    """Whether the design links what `weights` contrast."""
    return bool(np.allclose(fit.linked @ weights, weights, atol=1e-7))


def slope(fit: Fit, step: float, confidence: float = 0.95) -> Interval | Unanswered:
    """Factor by which the response changes when the covariate grows by `step`.

    For a fit with a covariate: place in the order of execution shows carry-over and drift.
    """
    weights = np.zeros(fit.design.shape[1])
    weights[-1] = step
    if not is_estimable(fit, weights):
        return NotComputable("the covariate does not vary inside the blocks")
    if fit.degrees < 1:
        return TooFew(fit.run_count, fit.run_count - fit.degrees + 1, "runs for an error estimate")
    return _exponential_interval(fit, weights, confidence)


def contrast_interval(fit: Fit, weights: FloatArray, confidence: float) -> Interval:
    """A contrast with its limits by t, on the scale of the fit."""
    centre = float(weights @ fit.coefficients)
    error = float(np.sqrt(fit.variance * (weights @ fit.covariance_base @ weights)))
    half = float(special.stdtrit(fit.degrees, 0.5 + confidence / 2)) * error
    return Interval(
        centre, centre - half, centre + half, confidence, fit.run_count,
        f"t, {fit.scale} scale, {fit.kind}", float(fit.degrees),
    )  # fmt: skip


def _exponential_interval(fit: Fit, weights: FloatArray, confidence: float) -> Interval:
    logs = contrast_interval(fit, weights, confidence)
    estimate, low, high = (float(np.exp(end)) for end in (logs.estimate, logs.low, logs.high))
    return replace(logs, estimate=estimate, low=low, high=high)


def bonferroni(confidence: float, family_size: int) -> float:
    """Level for each of `family_size` intervals so that all hold together with `confidence`.

    Raises ValueError for a family below 1.
    """
    if family_size < 1:
        raise ValueError(f"family_size: {family_size} found, at least 1 is allowed")
    return 1.0 - (1.0 - confidence) / family_size


def verdict(interval: Interval, margin: float | None) -> str:
    """ "different", "equivalent" (inside 1/(1+margin) … 1+margin) or "undecided".

    Without a margin nothing can be called equivalent.
    """
    if margin is not None and interval.within(1.0 / (1.0 + margin), 1.0 + margin):
        return "equivalent"
    return "different" if interval.excludes(1.0) else "undecided"


def geometric_mean(
    values: Sequence[float] | FloatArray, confidence: float = 0.95
) -> Interval | Unanswered:
    """Geometric mean of run summaries with a t interval on the log scale; three runs or more.

    Reference: measurement by run summaries; t keeps its level from n = 3 on.
    """
    data = np.asarray(values, dtype=np.float64)
    refused = _refuse(data) if data.size >= 3 else TooFew(data.size, 3, "runs")
    if refused is not None:
        return refused
    logs = np.log(data)
    half = float(special.stdtrit(data.size - 1, 0.5 + confidence / 2)) * float(
        np.std(logs, ddof=1) / np.sqrt(data.size)
    )
    centre = float(np.mean(logs))
    return Interval(
        float(np.exp(centre)),
        float(np.exp(centre - half)),
        float(np.exp(centre + half)),
        confidence,
        int(data.size),
        "t, log scale",
        float(data.size - 1),
    )


def mean_interval(
    values: Sequence[float] | FloatArray, confidence: float = 0.95
) -> Interval | float:
    """Arithmetic mean of run summaries with a t interval; below three values the bare mean.

    What it misses: skew. For ratios and latencies the geometric mean is the better centre.
    Raises ValueError without a value.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        raise ValueError("values: none found, at least one is needed for a mean")
    centre = float(np.mean(data))
    if data.size < 3:
        return centre
    half = float(special.stdtrit(data.size - 1, 0.5 + confidence / 2)) * float(
        np.std(data, ddof=1) / np.sqrt(data.size)
    )
    return Interval(
        centre,
        centre - half,
        centre + half,
        confidence,
        int(data.size),
        "t over runs",
        float(data.size - 1),
    )
