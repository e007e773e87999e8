"""Do the levels of a factor rank alike in every block? The tests of Friedman and of Quade.

What: one p over complete blocks, without assuming normal errors: the rank companion of the block
analysis of variance. Quade's test weighs blocks by their spread, Friedman's weighs them alike.
How: p is that of permuting within blocks, ties included: exact by running over all arrangements
where they are few enough, else from DRAWS seeded ones with the observed counted in. Chi-squared
is wrong for the few blocks of a campaign: it is used from CHI_SQUARED_MIN blocks on.
What it misses: which levels differ, and by how much. With fewer blocks than a p below 5 % takes
nothing is printed. A block that lacks a level is left out.
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
from scipy import stats as scipy_stats

from wattwire.stats.results import NotComputable, TooFew

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ALARM = 0.05
DRAWS = 39_999
"""Enough that a p of 5 % is known to ± 0.2 % of its own (two standard errors)."""
CHI_SQUARED_MIN = 500
"""Blocks from which the sums of scores are normal for all that a p shows; drawing takes minutes."""
STATES_MAX = 100_000
ARRANGEMENTS_MAX = 120
CELLS_KEPT_MAX = 120
"""Blocks times levels up to which drawn orders are kept: 5 MB. Larger ones are drawn anew."""
SEED = 1


@dataclass(frozen=True)
class BlockRanks:
    """A test over complete blocks. `exact` says whether every arrangement was counted."""

    name: str
    p: float
    block_count: int
    level_count: int
    exact: bool


Unanswered = TooFew | NotComputable


def friedman(table: Sequence[Sequence[float]] | FloatArray) -> BlockRanks | Unanswered:
    """Friedman's test on `table`, shape (blocks, levels), one value a cell in any unit."""
    return _test("Friedman", table)


def quade(table: Sequence[Sequence[float]] | FloatArray) -> BlockRanks | Unanswered:
    """Quade's test on `table`, shape (blocks, levels); spreads are compared across blocks."""
    return _test("Quade", table)


def _test(name: str, table: Sequence[Sequence[float]] | FloatArray) -> BlockRanks | Unanswered:
    data = np.asarray(table, dtype=np.float64)
    if data.ndim != 2 or data.shape[1] < 2:
        return NotComputable("fewer than two levels to rank")
    if np.isneginf(data).any():
        return NotComputable("a value is minus infinity")
    # +inf is a loss and ranks last; NaN is a run that could not say, and costs its block.
    data = data[~np.isnan(data).any(axis=1)]
    blocks, levels = data.shape
    needed = blocks_needed(levels)
    if blocks < needed:
        return TooFew(blocks, needed, "complete blocks for a rank test")
    if (data == data[:, :1]).all():
        return NotComputable("every value of a block is the same")
    if name == "Quade" and not np.isfinite(data).all():
        return NotComputable("a block's spread is infinite (loss)")
    scores = friedman_scores(data) if name == "Friedman" else quade_scores(data)
    if blocks >= CHI_SQUARED_MIN:
        return BlockRanks(name, _chi_squared_p(scores.astype(np.float64)), blocks, levels, False)
    rows = tuple(sorted(tuple(sorted(int(s) for s in row)) for row in scores))
    spread = int((scores.sum(axis=0) ** 2).sum())
    values, chances, exact = null_distribution(rows)
    p = float(chances[np.searchsorted(values, spread) :].sum())
    return BlockRanks(name, min(1.0, p), blocks, levels, exact)


def _chi_squared_p(scores: FloatArray) -> float:
    """p of centred scores, shape (blocks, levels): permuted within blocks, the sums of columns have
    as covariance the blocks' mean squares together, times levels / (levels - 1) off the mean."""
    levels = scores.shape[1]
    variance = float(np.sum(scores**2)) / (levels - 1)
    statistic = float(np.sum(scores.sum(axis=0) ** 2)) / variance
    return float(special.chdtrc(levels - 1, np.maximum(statistic, 0.0)))


def blocks_needed(levels: int) -> int:
    """Fewest blocks with which ranks of `levels` can give p ≤ 5 % at all."""
    blocks = 2
    while math.factorial(levels) / math.factorial(levels) ** blocks > ALARM:
        blocks += 1
    return blocks


def friedman_scores(data: FloatArray) -> IntArray:
    """Twice the centred ranks within each block, shape as `data`: whole numbers, ties too."""
    ranks = scipy_stats.rankdata(data, axis=1)
    return np.rint(2 * ranks - (data.shape[1] + 1)).astype(np.int64)


def quade_scores(data: FloatArray) -> IntArray:
    """Friedman's scores times twice the rank of each block's range."""
    spans = scipy_stats.rankdata(np.ptp(data, axis=1))
    weights = np.rint(2 * spans).astype(np.int64)
    return np.asarray(friedman_scores(data) * weights[:, None], dtype=np.int64)


@lru_cache(maxsize=512)
def null_distribution(rows: tuple[tuple[int, ...], ...]) -> tuple[IntArray, FloatArray, bool]:
    """Possible sums of squared column sums, ascending, their chances, and whether exact.

    Both statistics grow with that sum, and the rest of them is the same in every arrangement.
    """
    exact = _every_arrangement(rows)
    if exact is not None:
        return (*exact, True)
    sums = np.zeros((DRAWS, len(rows[0])), dtype=np.int64)
    for row, orders in zip(rows, _drawn_orders(len(rows), len(rows[0])), strict=True):
        sums += np.array(row, dtype=np.int64)[orders]
    values, counts = np.unique((sums**2).sum(axis=1), return_counts=True)
    chances = counts / (DRAWS + 1)
    # The arrangement seen is one of those possible: without it p could be 0. It weighs in at the
    # very end, so it counts for every observed value.
    return (
        np.append(values, np.iinfo(np.int64).max),
        np.append(chances, 1.0 / (DRAWS + 1)),
        False,
    )


def _drawn_orders(blocks: int, levels: int) -> Iterable[NDArray[np.int8] | IntArray]:
    """Seeded orders of the levels, shape (DRAWS, levels), for one block after the other.

    They depend on nothing else, so all tests of as many levels share them.
    """
    if blocks * levels > CELLS_KEPT_MAX:
        return itertools.islice(_draw_orders(levels), blocks)
    kept, more = _kept_orders(levels)
    kept += [
        orders.astype(np.int8) for orders in itertools.islice(more, max(0, blocks - len(kept)))
    ]
    return kept[:blocks]


@lru_cache(maxsize=4)
def _kept_orders(levels: int) -> tuple[list[NDArray[np.int8]], Iterator[IntArray]]:
    """The orders drawn so far, and where the next ones come from."""
    return [], _draw_orders(levels)


def _draw_orders(levels: int) -> Iterator[IntArray]:
    rng = np.random.default_rng(SEED)
    while True:
        yield rng.permuted(np.tile(np.arange(levels), (DRAWS, 1)), axis=1)


def _every_arrangement(rows: tuple[tuple[int, ...], ...]) -> tuple[IntArray, FloatArray] | None:
    """The exact distribution, or None where it takes too many steps.

    Columns are exchangeable in the blocks still to come, so states that differ only by the order
    of their columns are one: that keeps them few.
    """
    if math.factorial(len(rows[0])) > ARRANGEMENTS_MAX:
        return None
    # A column of a state is a row here: sums and comparisons then run along the states.
    states = np.sort(np.array(rows[0], dtype=np.int64))[:, None]
    chances: FloatArray = np.ones(1, dtype=np.float64)
    for row in rows[1:]:
        ways = np.array(list(itertools.permutations(row)), dtype=np.int64).T
        if states.shape[1] * ways.shape[1] > STATES_MAX:
            return None
        grown = [(s[:, None] + w).ravel() for s, w in zip(states, ways, strict=True)]
        weight = np.repeat(chances / ways.shape[1], ways.shape[1])
        states, where = _unique_columns(_sorted_columns(grown))
        chances = np.bincount(where, weight).astype(np.float64)
    values, where = np.unique((states**2).sum(axis=0), return_inverse=True)
    return values.astype(np.int64), np.bincount(where.ravel(), chances).astype(np.float64)


def _sorted_columns(rows: list[IntArray]) -> IntArray:
    """Each column of `rows` in ascending order: for a few rows faster than sorting them does it."""
    rows = list(rows)
    for end in range(len(rows) - 1, 0, -1):
        for at in range(end):
            low = np.minimum(rows[at], rows[at + 1])
            rows[at + 1] = np.maximum(rows[at], rows[at + 1])
            rows[at] = low
    return np.array(rows)


def _unique_columns(columns: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct columns in ascending order, and which of them each column is.

    Columns are compared as one whole number each, their entries its digits: many times as fast.
    """
    low = int(columns.min())
    base = int(columns.max()) - low + 1
    if base ** columns.shape[0] >= np.iinfo(np.int64).max:
        found, where = np.unique(columns, axis=1, return_inverse=True)
        return found, where.ravel()
    keys = np.zeros(columns.shape[1], dtype=np.int64)
    for row in columns:
        keys = keys * base + (row - low)
    order = np.argsort(keys)
    first = np.append(True, np.diff(keys[order]) > 0)
    where = np.empty(keys.size, dtype=np.int64)
    where[order] = np.cumsum(first) - 1
    return columns[:, order[first]], where
