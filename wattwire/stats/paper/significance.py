"""Define the results of the paper's tests, and prepare the data of the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable
Values = Sequence[float] | FloatArray

# Scatter below this share of the largest magnitude is rounding error.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Significance:
    """Result of a test: its `statistic` (with the symbol `symbol`) and its two-sided `p`.

    `counts` are the numbers of values per group. `degrees` are the degrees of freedom, with the
    numerator first. `method` is the method that computed p. If p is exact, `p_least` is the
    smallest possible p for these sizes and ties; the test cannot reject unless it is below the
    level. `interval` is the difference of the means in the data's unit, if the test has an
    interval.
    """

    name: str
    symbol: str
    statistic: float
    p: float
    counts: tuple[int, ...]
    method: str
    degrees: tuple[float, ...] = ()
    p_least: float | None = None
    interval: Interval | None = None

    def rejects(self, level: float) -> bool:
        """Return whether p is below `level`."""
        return bool(self.p < level)  # p may be a number of numpy

    def powerless(self, level: float) -> bool:
        """Return whether p cannot be below `level` for any data of these sizes."""
        return self.p_least is not None and self.p_least >= level


@dataclass(frozen=True)
class Pair:
    """A comparison of two groups after a test over all groups.

    `estimate` is first minus second. `p` maps each correction for multiple comparisons to its
    p-value.
    """

    first: str
    second: str
    estimate: float
    symbol: str
    statistic: float
    p: Mapping[str, float]
    interval: Interval | None = None


def arrays(groups: Sequence[Values]) -> list[FloatArray]:
    """Return the groups as arrays of shape (n,)."""
    return [np.asarray(group, dtype=np.float64).ravel() for group in groups]


def refuse_groups(
    groups: Sequence[FloatArray], least: int, finite: bool = True
) -> Unanswered | None:
    """Return the reason why these groups cannot be tested, or None.

    A test needs at least two groups of at least `least` values each. Groups with missing values are
    refused, because the caller decides whether to exclude values. Infinite values are refused if
    `finite` is set. Rank tests accept infinite values.
    """
    if len(groups) < 2:
        return TooFew(len(groups), 2, "groups")
    missing = sum(int(np.isnan(group).sum()) for group in groups)
    if missing:
        total = sum(group.size for group in groups)
        return NotComputable(f"missing in {missing} of {total} values")
    unbounded = sum(int(np.isinf(group).sum()) for group in groups)
    if finite and unbounded:
        return NotComputable(f"infinite in {unbounded} values, which only ranks can represent")
    smallest_size = min(group.size for group in groups)
    if smallest_size < least:
        return TooFew(smallest_size, least, "values in the smallest group")
    return None


def standardised(groups: Sequence[FloatArray]) -> list[FloatArray]:
    """Return finite groups, jointly shifted and scaled to −1 … 1, so that no square overflows.

    Use the result only for statistics that are invariant to shift and scale.
    """
    largest, centre, spread = _scaling(groups)
    if spread <= ROUNDING:
        return [np.zeros_like(group) for group in groups]
    return [(group / largest - centre) / spread for group in groups]


def unit(groups: Sequence[FloatArray]) -> float:
    """Return the size of one standardised unit in the data's unit, which may be infinite."""
    largest, _, spread = _scaling(groups)
    return largest * spread


def _scaling(groups: Sequence[FloatArray]) -> tuple[float, float, float]:
    all_values = np.concatenate(groups)
    largest = float(np.max(np.abs(all_values))) or 1.0
    centre = float(np.median(all_values / largest))
    return largest, centre, float(np.max(np.abs(all_values / largest - centre)))


def scatters(groups: Sequence[FloatArray]) -> bool:
    """Return whether the values of any standardised group differ by more than rounding error."""
    return any(float(np.ptp(group)) > ROUNDING for group in groups)


def f_ratio(groups: Sequence[FloatArray]) -> tuple[float, float]:
    """Return F and p-value of a one-way analysis of variance. Values must vary within groups."""
    degrees = (len(groups) - 1, sum(group.size for group in groups) - len(groups))
    means = [float(np.mean(group)) for group in groups]
    centre = float(np.mean(np.concatenate(groups)))
    inside = sum(float(np.sum((g - m) ** 2)) for g, m in zip(groups, means, strict=True))
    between = sum(g.size * (m - centre) ** 2 for g, m in zip(groups, means, strict=True))
    statistic = between / degrees[0] / (inside / degrees[1])
    return statistic, float(scipy.stats.f.sf(statistic, *degrees))


def no_scatter() -> NotComputable:
    """Return the result for groups in which all values are equal."""
    return NotComputable("no scatter within the groups: all values of each group are equal")
