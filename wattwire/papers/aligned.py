"""Test interactions of several factors by the aligned rank transform.

What it computes: an F test of each main effect and interaction of a full factorial design, on ranks
that are aligned for that effect.
How: each value minus its cell's mean, plus the estimate of the effect, is ranked. A full factorial
analysis of variance of the ranks (type III, sum-to-zero coding) tests only that effect.
What it misses: ratios. The method reports multiplicative main effects as an interaction (with main
effects of ×3 and ×5 and no interaction on the log scale, in every trial). Blocks are ignored. Data
in which most values, or the values of most combinations, are equal give no result.
Reference: Higgins & Tashtoush 1994, Nonlinear World 1:201; Wobbrock et al. 2011, CHI '11:143.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

import numpy as np
import scipy
from scipy import special

from wattwire.papers.significance import Significance
from wattwire.stats.groups import (
    FloatArray,
    Unanswered,
    Values,
    arrays,
    no_scatter,
    refuse_groups,
    scatters,
    standardised,
)
from wattwire.stats.results import NotComputable, TooFew

FACTORS_MAX = 4


def aligned_ranks(
    response: Values, factors: Mapping[str, Sequence[Hashable]]
) -> dict[tuple[str, ...], Significance] | Unanswered:
    """Return the F test of each effect, by the names of its factors; all shapes are (runs,).

    The function requires two to four factors with at least two levels each, at least one value for
    every combination of levels, and more values than combinations.
    """
    values = np.asarray(response, dtype=np.float64).ravel()
    refusal = _refusal(values, factors)
    if refusal is not None:
        return refusal
    names = list(factors)
    level_codes = {name: _coded(factors[name]) for name in names}
    sizes = {name: int(level_codes[name].max()) + 1 for name in names}
    cells = np.zeros(values.size, dtype=np.int64)
    for name in names:
        cells = cells * sizes[name] + level_codes[name]
    counts = np.bincount(cells, minlength=int(np.prod(list(sizes.values()))))
    if counts.min() == 0:
        return NotComputable(f"{int((counts == 0).sum())} combinations of levels have no value")
    if values.size <= counts.size:
        return TooFew(
            values.size, counts.size + 1, ("values beyond the combinations, to estimate the error")
        )
    scaled = standardised([values])[0]
    tie_refusal = _nearly_constant(scaled, cells, counts)
    if tie_refusal is not None:
        return tie_refusal
    if not scatters([scaled[cells == cell] for cell in range(counts.size)]):
        return no_scatter()
    table = (np.bincount(cells, weights=scaled) / counts).reshape(list(sizes.values()))
    residuals = scaled - table.ravel()[cells]
    effects = [
        tuple(members) for size in range(1, len(names) + 1) for members in combinations(names, size)
    ]
    columns = {effect: _columns(effect, level_codes, sizes) for effect in effects}
    tests = {}
    for effect in effects:
        aligned = residuals + _effect(table, [names.index(name) for name in effect]).ravel()[cells]
        # Rounding errors separate tied values, so round again before ranking.
        ranks = scipy.stats.rankdata(np.round(aligned, 10))
        test = _type_three(ranks, columns, effect)
        if not isinstance(test, Significance):
            return test
        tests[effect] = test
    return tests


def _refusal(values: FloatArray, factors: Mapping[str, Sequence[Hashable]]) -> Unanswered | None:
    for name, levels in factors.items():
        if len(levels) != values.size:
            raise ValueError(f"{name}: {len(levels)} levels for {values.size} values")
    if not 2 <= len(factors) <= FACTORS_MAX:
        return NotComputable(
            f"found {len(factors)} factors; allowed for aligned ranks: 2 to {FACTORS_MAX}"
        )
    for name, levels in factors.items():
        if len(set(levels)) < 2:
            return TooFew(len(set(levels)), 2, f"levels of {name}")
    return refuse_groups(arrays([values, values]), 1)


def _nearly_constant(
    values: FloatArray, cells: np.ndarray, counts: np.ndarray
) -> NotComputable | None:
    """Return a refusal if a few differing values would determine every effect, else None.

    A single differing value changes the estimates of all effects equally, and ranks give it as much
    weight as scatter in all values. A simulation had eight combinations of three values and a true
    null hypothesis. The test rejected it at 5 % in 22 % of the trials if four of five values were
    equal, and in all trials if all values but one were equal.
    """
    rounded = np.round(values, 10)
    equal_values = int(np.unique(rounded, return_counts=True)[1].max())
    if 2 * equal_values > values.size and equal_values < values.size:
        return NotComputable(
            f"{equal_values} of {values.size} values are equal, so the few others would decide "
            "every effect"
        )
    repeated_cells = [rounded[cells == cell] for cell in np.flatnonzero(counts > 1)]
    constant_cells = sum(float(np.ptp(cell_values)) == 0 for cell_values in repeated_cells)
    if 2 * constant_cells > len(repeated_cells) > constant_cells:
        return NotComputable(
            f"in {constant_cells} of {len(repeated_cells)} combinations of levels all values are "
            "equal, so the few others would decide every effect"
        )
    return None


def _coded(levels: Sequence[Hashable]) -> np.ndarray:
    codes = {level: code for code, level in enumerate(dict.fromkeys(levels))}
    return np.array([codes[level] for level in levels], dtype=np.int64)


def _effect(table: FloatArray, axes: Sequence[int]) -> FloatArray:
    """Return the effect in each cell: means over the other factors minus lower-order effects."""
    estimate = np.zeros_like(table)
    for size in range(len(axes) + 1):
        for kept_axes in combinations(axes, size):
            other_axes = tuple(axis for axis in range(table.ndim) if axis not in kept_axes)
            sign = (-1) ** (len(axes) - size)
            estimate = estimate + sign * table.mean(axis=other_axes, keepdims=True)
    return np.asarray(np.broadcast_to(estimate, table.shape))


def _columns(
    effect: Sequence[str], coded: Mapping[str, np.ndarray], sizes: Mapping[str, int]
) -> FloatArray:
    """Return the sum-to-zero columns of one effect, shape (runs, product of (levels − 1))."""
    product = np.ones((len(next(iter(coded.values()))), 1))
    for name in effect:
        contrasts = np.vstack([np.eye(sizes[name] - 1), -np.ones(sizes[name] - 1)])
        factor_columns = contrasts[coded[name]]
        product = (product[:, :, None] * factor_columns[:, None, :]).reshape(len(product), -1)
    return product


def _type_three(
    ranks: FloatArray, columns: Mapping[tuple[str, ...], FloatArray], effect: tuple[str, ...]
) -> Significance | Unanswered:
    count = ranks.size
    ones = np.ones((count, 1))
    full = np.hstack([ones, *columns.values()])
    without = np.hstack(
        [ones, *(effect_columns for name, effect_columns in columns.items() if name != effect)]
    )
    error_squares = _squares(full, ranks)
    numerator, denominator = float(columns[effect].shape[1]), float(count - full.shape[1])
    if error_squares <= 1e-9 * float(np.sum((ranks - ranks.mean()) ** 2)) or np.ptp(ranks) == 0:
        return NotComputable("the ranks do not scatter within the combinations of levels")
    statistic = (
        (_squares(without, ranks) - error_squares) / numerator / (error_squares / denominator)
    )
    statistic = max(0.0, statistic)
    return Significance(
        "Aligned ranks",
        "F",
        statistic,
        float(special.fdtrc(numerator, denominator, np.maximum(statistic, 0.0))),
        (count,),
        "F distribution, type III",
        (numerator, denominator),
    )


def _squares(design: FloatArray, ranks: FloatArray) -> float:
    coefficients = np.linalg.lstsq(design, ranks, rcond=None)[0]
    return float(np.sum((ranks - design @ coefficients) ** 2))
