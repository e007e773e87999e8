"""Aligned rank transform: interactions of several factors by ranks, as papers use it.

What: an F test for each main effect and interaction of a full factorial, on ranks that were
aligned for that effect.
How: from each value its cell's mean is taken off and the one effect's estimate put back; the
results are ranked over all, and a full factorial analysis of variance (type III, deviations
from the grand mean) of those ranks is read for that effect alone.
What it misses: it is no test of ratios. Main effects that multiply are an interaction for it:
with main effects of ×3 and ×5 and none on the log scale it reports one in every trial. Blocks.
Data that are nearly all ties: refused where most values, or those of most combinations, are equal.
Reference: Higgins & Tashtoush 1994, Nonlinear World 1:201; Wobbrock et al. 2011, CHI '11:143.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

import numpy as np
from scipy import special
from scipy import stats as scipy_stats

from wattwire.stats.paper.results import (
    FloatArray,
    Significance,
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
    """Each effect, as a tuple of factors' names, with its F test; shapes (runs,) throughout.

    Needs two to four factors of two levels or more, and every combination of levels with at
    least one value, more values than combinations in all.
    """
    values = np.asarray(response, dtype=np.float64).ravel()
    refused = _refused(values, factors)
    if refused is not None:
        return refused
    names = list(factors)
    coded = {name: _coded(factors[name]) for name in names}
    sizes = {name: int(coded[name].max()) + 1 for name in names}
    cells = np.zeros(values.size, dtype=np.int64)
    for name in names:
        cells = cells * sizes[name] + coded[name]
    counts = np.bincount(cells, minlength=int(np.prod(list(sizes.values()))))
    if counts.min() == 0:
        return NotComputable(f"{int((counts == 0).sum())} combinations of levels hold no value")
    if values.size <= counts.size:
        return TooFew(values.size, counts.size + 1, "values for an error besides the combinations")
    scaled = standardised([values])[0]
    tied = _nearly_constant(scaled, cells, counts)
    if tied is not None:
        return tied
    if not scatters([scaled[cells == cell] for cell in range(counts.size)]):
        return no_scatter()
    table = (np.bincount(cells, weights=scaled) / counts).reshape(list(sizes.values()))
    residuals = scaled - table.ravel()[cells]
    effects = [tuple(e) for size in range(1, len(names) + 1) for e in combinations(names, size)]
    columns = {effect: _columns(effect, coded, sizes) for effect in effects}
    found = {}
    for effect in effects:
        aligned = residuals + _effect(table, [names.index(n) for n in effect]).ravel()[cells]
        # Ties that rounding tore apart are ties.
        ranks = scipy_stats.rankdata(np.round(aligned, 10))
        tested = _type_three(ranks, columns, effect)
        if not isinstance(tested, Significance):
            return tested
        found[effect] = tested
    return found


def _refused(values: FloatArray, factors: Mapping[str, Sequence[Hashable]]) -> Unanswered | None:
    for name, levels in factors.items():
        if len(levels) != values.size:
            raise ValueError(f"{name}: {len(levels)} levels for {values.size} values")
    if not 2 <= len(factors) <= FACTORS_MAX:
        return NotComputable(f"{len(factors)} factors: aligned ranks take 2 to {FACTORS_MAX}")
    for name, levels in factors.items():
        if len(set(levels)) < 2:
            return TooFew(len(set(levels)), 2, f"levels of {name}")
    return refuse_groups(arrays([values, values]), 1)


def _nearly_constant(
    values: FloatArray, cells: np.ndarray, counts: np.ndarray
) -> NotComputable | None:
    """Why few values that differ would decide every effect alone, or None.

    One value that differs moves the estimate of each effect alike, and ranks make of it as much as
    of scatter everywhere. With eight combinations of three values a true null was rejected in 22 %
    of simulated tests at 5 % where four of five values were alike, always where all but one were.
    """
    rounded = np.round(values, 10)
    alike = int(np.unique(rounded, return_counts=True)[1].max())
    if 2 * alike > values.size and alike < values.size:
        return NotComputable(
            f"{alike} of {values.size} values are equal: the few others would decide every effect"
        )
    several = [rounded[cells == cell] for cell in np.flatnonzero(counts > 1)]
    still = sum(float(np.ptp(inside)) == 0 for inside in several)
    if 2 * still > len(several) > still:
        return NotComputable(
            f"in {still} of {len(several)} combinations of levels all values are equal: the few "
            "others would decide every effect"
        )
    return None


def _coded(levels: Sequence[Hashable]) -> np.ndarray:
    places = {level: at for at, level in enumerate(dict.fromkeys(levels))}
    return np.array([places[level] for level in levels], dtype=np.int64)


def _effect(table: FloatArray, axes: Sequence[int]) -> FloatArray:
    """The effect's estimate in every cell: means over the other factors, lower effects off."""
    total = np.zeros_like(table)
    for size in range(len(axes) + 1):
        for kept in combinations(axes, size):
            others = tuple(axis for axis in range(table.ndim) if axis not in kept)
            sign = (-1) ** (len(axes) - size)
            total = total + sign * table.mean(axis=others, keepdims=True)
    return np.asarray(np.broadcast_to(total, table.shape))


def _columns(
    effect: Sequence[str], coded: Mapping[str, np.ndarray], sizes: Mapping[str, int]
) -> FloatArray:
    """Sum-to-zero columns of one effect, shape (runs, product of levels − 1)."""
    made = np.ones((len(next(iter(coded.values()))), 1))
    for name in effect:
        contrasts = np.vstack([np.eye(sizes[name] - 1), -np.ones(sizes[name] - 1)])
        one = contrasts[coded[name]]
        made = (made[:, :, None] * one[:, None, :]).reshape(len(made), -1)
    return made


def _type_three(
    ranks: FloatArray, columns: Mapping[tuple[str, ...], FloatArray], effect: tuple[str, ...]
) -> Significance | Unanswered:
    count = ranks.size
    ones = np.ones((count, 1))
    full = np.hstack([ones, *columns.values()])
    without = np.hstack([ones, *(part for name, part in columns.items() if name != effect)])
    error = _squares(full, ranks)
    numerator, denominator = float(columns[effect].shape[1]), float(count - full.shape[1])
    if error <= 1e-9 * float(np.sum((ranks - ranks.mean()) ** 2)) or np.ptp(ranks) == 0:
        return NotComputable("no scatter of the ranks inside the combinations of levels")
    statistic = (_squares(without, ranks) - error) / numerator / (error / denominator)
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
    solved = np.linalg.lstsq(design, ranks, rcond=None)[0]
    return float(np.sum((ranks - design @ solved) ** 2))
