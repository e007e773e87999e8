"""Kruskal–Wallis with exact p for small groups: enumeration where it can be had.

What: whether groups come from one distribution, by the ranks of all their values together. For
two groups it is the two-sided rank-sum test.
How: up to 10 values a group p is the share of all ways to deal the ranks (ties as they are) to
the groups that give an H at least as large. The ways are counted value by value, equal rank sums
merged; where even that takes too many states, p is the share among 99,999 seeded permutations
(plus one, over 100,000). Above 10 values in any group: the χ² approximation, which for three
values a group rejects at 5 % in 10 % of trials with two groups and in 1 % with three.
What it misses: differences in spread that leave mean ranks alone; blocks. Two groups of three
cannot reach p < .05 at all: `Significance.powerless` says so.
Reference: Kruskal & Wallis 1952, JASA 47:583; Pagano & Tritchler 1983, JASA 78:435 (counting);
Phipson & Smyth 2010, Statistical Applications in Genetics 9:39 (plus one).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from wattwire.stats.paper.results import Significance, Unanswered, Values, arrays, refuse_groups
from wattwire.stats.results import NotComputable, TooFew

IntArray = NDArray[np.int64]
EXACT_SIZE_MAX = 10
STATES_MAX = 200_000
DRAWS = 99_999
SEED = 20_250_402


def kruskal_wallis(groups: Sequence[Values]) -> Significance | Unanswered:
    """H over two groups or more, each of one value or more; +∞ and −∞ count as the extremes."""
    data = arrays(groups)
    refused = refuse_groups(data, 1, finite=False)
    if refused is not None:
        return refused
    sizes = tuple(group.size for group in data)
    ranks = scipy_stats.rankdata(np.concatenate(data))
    if sum(sizes) < 3:
        return TooFew(sum(sizes), 3, "values")
    if float(np.ptp(ranks)) == 0:
        return NotComputable("all values are equal")
    statistic, p = scipy_stats.kruskal(*np.split(ranks, np.cumsum(sizes)[:-1]))
    least, method = None, "χ² approximation"
    if max(sizes) <= EXACT_SIZE_MAX:
        parts = np.split(ranks, np.cumsum(sizes)[:-1])
        doubled = [np.rint(2 * part).astype(np.int64) for part in parts]
        p, least, method = _exact(doubled, sizes)
    return Significance(
        "Kruskal–Wallis", "H", statistic, p, sizes, method,
        (len(sizes) - 1.0,), least,
    )  # fmt: skip


def _exact(doubled: Sequence[IntArray], sizes: tuple[int, ...]) -> tuple[float, float, str]:
    order = sorted(range(len(sizes)), key=lambda at: sizes[at])
    ordered = tuple(sizes[at] for at in order)
    key = tuple(int(v) for v in np.sort(np.concatenate(doubled)))
    null = _null(key, ordered)
    sums = np.array([[int(doubled[at].sum()) for at in order]], dtype=np.int64)
    observed = int(_spread(sums, ordered)[0])
    p = null.at_least(observed)
    return p, null.least, null.method


@dataclass(frozen=True)
class _Null:
    """Distribution of the spread of rank sums when nothing differs; `upper` is P(≥ value)."""

    values: IntArray
    upper: NDArray[np.float64]
    method: str
    added: int
    draws: float

    def at_least(self, observed: int) -> float:
        at = int(np.searchsorted(self.values, observed))
        share = float(self.upper[at]) if at < self.values.size else 0.0
        return min(1.0, (share * self.draws + self.added) / (self.draws + self.added))

    @property
    def least(self) -> float:
        return self.at_least(int(self.values[-1])) if not self.added else 1 / (self.draws + 1)


@lru_cache(maxsize=256)
def _null(doubled: tuple[int, ...], sizes: tuple[int, ...]) -> _Null:
    """`doubled` are twice the ranks of all values, sorted; `sizes` sorted upwards."""
    counted = _enumerated(doubled, sizes)
    ways = math.factorial(len(doubled))
    for size in sizes:
        ways //= math.factorial(size)
    if counted is not None:
        values, weights = counted
        method = f"exact, all {ways:,} arrangements counted"
        upper = np.cumsum(weights[::-1])[::-1] / weights.sum()
        return _Null(values, upper, method, 0, 1.0)
    rng = np.random.default_rng(SEED)
    ranks = np.array(doubled, dtype=np.int64)
    cuts = np.cumsum((0, *sizes))[:-1]
    drawn = [
        _spread(np.add.reduceat(rng.permuted(np.tile(ranks, (size, 1)), axis=1), cuts, axis=1),
                sizes)
        for size in _portions(DRAWS)
    ]  # fmt: skip
    values, counts = np.unique(np.concatenate(drawn), return_counts=True)
    upper = np.cumsum(counts[::-1])[::-1] / DRAWS
    method = f"{DRAWS:,} permutations, seed {SEED} ({_rounded(ways)} arrangements are too many)"
    return _Null(values, upper, method, 1, float(DRAWS))


def _rounded(whole: int) -> str:
    """Two digits and a power of ten; of dozens of groups, more than a float can hold."""
    return f"{Decimal(whole):.1e}"


def _portions(total: int, most: int = 20_000) -> list[int]:
    return [most] * (total // most) + ([total % most] if total % most else [])


def _spread(sums: IntArray, sizes: tuple[int, ...]) -> IntArray:
    """Σ (rank sum)²/size times a common multiple: orders arrangements as H does, in integers."""
    common = math.lcm(*sizes)
    weights = np.array([common // size for size in sizes], dtype=np.int64)
    return np.asarray(sums**2 @ weights, dtype=np.int64)


def _enumerated(
    doubled: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[IntArray, NDArray[np.float64]] | None:
    """Every reachable spread with its number of ways; None where the states are too many.

    A state holds, for each group, how many values it has and their sum. Groups of equal size
    may swap, so their states are kept sorted.
    """
    shift = int(sum(doubled[-max(sizes) :])).bit_length()
    width = shift + max(sizes).bit_length()
    if width * (len(sizes) - 1) > 62:
        return None
    states = np.zeros((1, len(sizes)), dtype=np.int64)
    ways = np.ones(1)
    for rank in doubled:
        grown, grown_ways = [], []
        for at, size in enumerate(sizes):
            room = (states[:, at] >> shift) < size
            more = states[room]
            more[:, at] += (1 << shift) + rank
            grown.append(more)
            grown_ways.append(ways[room])
        states, ways = _merged(np.concatenate(grown), np.concatenate(grown_ways), sizes, width)
        if len(states) > STATES_MAX:
            return None
    spreads = _spread(states & ((1 << shift) - 1), sizes)
    values, where = np.unique(spreads, return_inverse=True)
    return values, np.asarray(np.bincount(where.ravel(), weights=ways), dtype=np.float64)


def _merged(
    states: IntArray, ways: NDArray[np.float64], sizes: tuple[int, ...], width: int
) -> tuple[IntArray, NDArray[np.float64]]:
    for size in set(sizes):
        same = [at for at, other in enumerate(sizes) if other == size]
        if len(same) > 1:
            states[:, same] = np.sort(states[:, same], axis=1)
    # The last group follows from the others: count and sum of all are known at every step.
    code = np.zeros(len(states), dtype=np.int64)
    for at in range(len(sizes) - 1):
        code = (code << width) | states[:, at]
    _, first, where = np.unique(code, return_index=True, return_inverse=True)
    return states[first], np.asarray(np.bincount(where.ravel(), weights=ways), dtype=np.float64)
