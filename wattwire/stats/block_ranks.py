"""Test complete blocks by ranks with Friedman's and Quade's tests.

What it computes: the p-value of the hypothesis that no level differs, without assuming normal
errors. This is the rank counterpart of the block analysis of variance. Quade's test weights blocks
by their range; Friedman's test weights them equally.
How: p comes from permutation within blocks and accounts for ties. For few arrangements, enumeration
gives an exact p. Otherwise, p comes from DRAWS seeded permutations plus the observed arrangement.
With CHI_SQUARED_MIN or more blocks, p comes from the chi-squared approximation, which is too
inaccurate for fewer blocks.
What it misses: which levels differ, and by how much. The test gives no result with too few blocks
to reach p < 5 %. Blocks without a value at every level are excluded.
Reference: Friedman 1937, JASA 32:675; Quade 1979, JASA 74:680; Conover, Practical Nonparametric
Statistics, 5.8; Phipson & Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9:39 (p from drawn
permutations).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.results import NotComputable, TooFew

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ALARM = 0.05
DRAWS = 39_999
"""Number of random permutations. They estimate a p of 5 % to ± 0.2 % (two standard errors)."""
CHI_SQUARED_MIN = 500
"""Minimum number of blocks for the normal approximation; permutations would take minutes."""
STATES_MAX = 100_000
ARRANGEMENTS_MAX = 120
CELLS_KEPT_MAX = 120
"""Maximum blocks × levels for which permutations are cached (5 MB)."""
SEED = 1


@dataclass(frozen=True)
class BlockRanks:
    """Result of a test over complete blocks.

    `exact` is true if all arrangements were enumerated.
    """

    name: str
    p: float
    block_count: int
    level_count: int
    exact: bool


Unanswered = TooFew | NotComputable


def friedman(table: Sequence[Sequence[float]] | FloatArray) -> BlockRanks | Unanswered:
    """Return Friedman's test of `table`, shape (blocks, levels), one value per cell in any unit."""
    return _test("Friedman", table)


def quade(table: Sequence[Sequence[float]] | FloatArray) -> BlockRanks | Unanswered:
    """Return Quade's test of `table`, shape (blocks, levels).

    Blocks are weighted by their range.
    """
    return _test("Quade", table)


def _test(name: str, table: Sequence[Sequence[float]] | FloatArray) -> BlockRanks | Unanswered:
    data = np.asarray(table, dtype=np.float64)
    if data.ndim != 2 or data.shape[1] < 2:
        return NotComputable("fewer than two levels to rank")
    if np.isneginf(data).any():
        return NotComputable("a value is minus infinity")
    # +inf is a loss and ranks highest. NaN is a run without a value, which excludes its block.
    data = data[~np.isnan(data).any(axis=1)]
    blocks, levels = data.shape
    needed = blocks_needed(levels)
    if blocks < needed:
        return TooFew(blocks, needed, "blocks with all levels for a rank test")
    if (data == data[:, :1]).all():
        return NotComputable("all values of each block are equal")
    if name == "Quade" and not np.isfinite(data).all():
        return NotComputable("a block's spread is infinite (loss)")
    scores = friedman_scores(data) if name == "Friedman" else quade_scores(data)
    if blocks >= CHI_SQUARED_MIN:
        return BlockRanks(name, _chi_squared_p(scores.astype(np.float64)), blocks, levels, False)
    rows = tuple(sorted(tuple(sorted(int(score) for score in row)) for row in scores))
    spread = int((scores.sum(axis=0) ** 2).sum())
    values, chances, exact = null_distribution(rows)
    p = float(chances[np.searchsorted(values, spread) :].sum())
    return BlockRanks(name, min(1.0, p), blocks, levels, exact)


def _chi_squared_p(scores: FloatArray) -> float:
    """Return the chi-squared p-value of centred scores, shape (blocks, levels).

    Under permutation within blocks, the variance of a column sum is the sum of the blocks' mean
    squares. In directions orthogonal to the mean, it is larger by the factor levels / (levels − 1).
    """
    levels = scores.shape[1]
    variance = float(np.sum(scores**2)) / (levels - 1)
    statistic = float(np.sum(scores.sum(axis=0) ** 2)) / variance
    return float(special.chdtrc(levels - 1, np.maximum(statistic, 0.0)))


def blocks_needed(levels: int) -> int:
    """Return the minimum number of blocks for which a rank test can reach p ≤ 5 %."""
    blocks = 2
    while math.factorial(levels) / math.factorial(levels) ** blocks > ALARM:
        blocks += 1
    return blocks


def friedman_scores(data: FloatArray) -> IntArray:
    """Return twice the centred ranks within each block, in the shape of `data`.

    The factor 2 makes the scores integers even with ties.
    """
    return np.array([_doubled_ranks(block) for block in data]) - (data.shape[1] + 1)


def quade_scores(data: FloatArray) -> IntArray:
    """Return Friedman's scores times twice the rank of each block's range.

    The shape is the shape of `data`.
    """
    weights = _doubled_ranks(np.ptp(data, axis=1))
    return friedman_scores(data) * weights[:, None]


def _doubled_ranks(values: FloatArray) -> IntArray:
    """Return twice the rank of each value, in the shape of `values`. Ties have the mean rank."""
    ordered = np.sort(values)
    smaller = np.searchsorted(ordered, values, side="left")
    return smaller + np.searchsorted(ordered, values, side="right") + 1


@lru_cache(maxsize=512)
def null_distribution(rows: tuple[tuple[int, ...], ...]) -> tuple[IntArray, FloatArray, bool]:
    """Return the possible sums of squared column sums, their probabilities, and exactness.

    The sums are in ascending order. Both test statistics increase with this sum, and their other
    terms are equal in all arrangements.
    """
    enumerated = _every_arrangement(rows)
    if enumerated is not None:
        return (*enumerated, True)
    sums = np.zeros((DRAWS, len(rows[0])), dtype=np.int64)
    for row, orders in zip(rows, _drawn_orders(len(rows), len(rows[0])), strict=True):
        sums += np.array(row, dtype=np.int64)[orders]
    values, counts = np.unique((sums**2).sum(axis=1), return_counts=True)
    chances = counts / (DRAWS + 1)
    # Include the observed arrangement as the last entry, because p could otherwise be 0.
    return (
        np.append(values, np.iinfo(np.int64).max),
        np.append(chances, 1.0 / (DRAWS + 1)),
        False,
    )


def _drawn_orders(blocks: int, levels: int) -> Iterable[NDArray[np.int8] | IntArray]:
    """Return seeded permutations of the levels, shape (DRAWS, levels) for each block.

    The permutations depend only on the number of levels, so all tests with this number share them.
    """
    if blocks * levels > CELLS_KEPT_MAX:
        return itertools.islice(_draw_orders(levels), blocks)
    cached, generator = _kept_orders(levels)
    cached += [
        orders.astype(np.int8)
        for orders in itertools.islice(generator, max(0, blocks - len(cached)))
    ]
    return cached[:blocks]


@lru_cache(maxsize=4)
def _kept_orders(levels: int) -> tuple[list[NDArray[np.int8]], Iterator[IntArray]]:
    """Return the permutations drawn so far, and the generator that draws more of them."""
    return [], _draw_orders(levels)


def _draw_orders(levels: int) -> Iterator[IntArray]:
    rng = np.random.default_rng(SEED)
    while True:
        yield rng.permuted(np.tile(np.arange(levels), (DRAWS, 1)), axis=1)


def _every_arrangement(rows: tuple[tuple[int, ...], ...]) -> tuple[IntArray, FloatArray] | None:
    """Return the exact values and their probabilities, or None if there are too many states.

    Columns are exchangeable in the remaining blocks, so states that differ only in the order of the
    columns are merged. This limits the number of states.
    """
    if math.factorial(len(rows[0])) > ARRANGEMENTS_MAX:
        return None
    # Each state is a column of `states`, so that sums and comparisons use contiguous memory.
    states = np.sort(np.array(rows[0], dtype=np.int64))[:, None]
    chances: FloatArray = np.ones(1, dtype=np.float64)
    for row in rows[1:]:
        orders = np.array(list(itertools.permutations(row)), dtype=np.int64).T
        if states.shape[1] * orders.shape[1] > STATES_MAX:
            return None
        grown_rows = [
            (sums[:, None] + added).ravel() for sums, added in zip(states, orders, strict=True)
        ]
        weights = np.repeat(chances / orders.shape[1], orders.shape[1])
        states, merged_index = _unique_columns(_sorted_columns(grown_rows))
        chances = np.bincount(merged_index, weights).astype(np.float64)
    values, merged_index = np.unique((states**2).sum(axis=0), return_inverse=True)
    return values.astype(np.int64), np.bincount(merged_index.ravel(), chances).astype(np.float64)


def _sorted_columns(rows: list[IntArray]) -> IntArray:
    """Return `rows` with each column sorted in ascending order; faster than `sort` for few rows."""
    rows = list(rows)
    for end in range(len(rows) - 1, 0, -1):
        for index in range(end):
            low = np.minimum(rows[index], rows[index + 1])
            rows[index + 1] = np.maximum(rows[index], rows[index + 1])
            rows[index] = low
    return np.array(rows)


def _unique_columns(columns: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct columns in ascending order, and the index of each column's entry.

    Each column is encoded as an integer with its entries as digits, which is many times faster.
    """
    low = int(columns.min())
    base = int(columns.max()) - low + 1
    if base ** columns.shape[0] >= np.iinfo(np.int64).max:
        distinct, distinct_index = np.unique(columns, axis=1, return_inverse=True)
        return distinct, distinct_index.ravel()
    keys = np.zeros(columns.shape[1], dtype=np.int64)
    for row in columns:
        keys = keys * base + (row - low)
    order = np.argsort(keys)
    first = np.append(True, np.diff(keys[order]) > 0)
    distinct_index = np.empty(keys.size, dtype=np.int64)
    distinct_index[order] = np.cumsum(first) - 1
    return columns[:, order[first]], distinct_index
