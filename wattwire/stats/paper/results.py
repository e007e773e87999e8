"""What a test of the paper path answers, and how data are made ready for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable
Values = Sequence[float] | FloatArray

# Scatter below this share of the largest magnitude is rounding of the numbers, not scatter.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Significance:
    """A test's outcome: `statistic` (called `symbol`) and its two-sided `p`.

    `counts` are the values per group, `degrees` the degrees of freedom (numerator first),
    `method` says how p came about. `p_least` is the smallest p that the test can give for
    these sizes and ties, where p is exact: above the level, the test cannot reject at all.
    `interval` is the difference of means in the data's unit, where the test has one.
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
        """Whether p lies below `level`."""
        return self.p < level

    def powerless(self, level: float) -> bool:
        """Whether no data of these sizes could make p fall below `level`."""
        return self.p_least is not None and self.p_least >= level


@dataclass(frozen=True)
class Pair:
    """Two groups compared after a test over all: `estimate` is first minus second.

    `p` maps a way of correcting for several comparisons to the p under it.
    """

    first: str
    second: str
    estimate: float
    symbol: str
    statistic: float
    p: Mapping[str, float]
    interval: Interval | None = None


def arrays(groups: Sequence[Values]) -> list[FloatArray]:
    """The groups as arrays of shape (n,)."""
    return [np.asarray(group, dtype=np.float64).ravel() for group in groups]


def refuse_groups(
    groups: Sequence[FloatArray], least: int, finite: bool = True
) -> Unanswered | None:
    """Why no test of two groups or more can be made of these, or None.

    Each needs `least` values. Missing values are refused, not dropped: who calls decides and
    says so. Infinite ones are refused where `finite` (ranks can carry them).
    """
    if len(groups) < 2:
        return TooFew(len(groups), 2, "groups")
    missing = sum(int(np.isnan(group).sum()) for group in groups)
    if missing:
        total = sum(group.size for group in groups)
        return NotComputable(f"missing in {missing} of {total} values")
    unbounded = sum(int(np.isinf(group).sum()) for group in groups)
    if finite and unbounded:
        return NotComputable(f"infinite in {unbounded} values: only ranks can carry them")
    smallest = min(group.size for group in groups)
    if smallest < least:
        return TooFew(smallest, least, "values in the smallest group")
    return None


def standardised(groups: Sequence[FloatArray]) -> list[FloatArray]:
    """Finite groups moved and scaled together into −1 … 1, so that no square can overflow.

    Statistics that neither shift nor scale can change are worked out on these.
    """
    largest, centre, spread = _scaling(groups)
    if spread <= ROUNDING:
        return [np.zeros_like(group) for group in groups]
    return [(group / largest - centre) / spread for group in groups]


def unit(groups: Sequence[FloatArray]) -> float:
    """How much of the data's unit one step of the standardised scale is; may be infinite."""
    largest, _, spread = _scaling(groups)
    return largest * spread


def _scaling(groups: Sequence[FloatArray]) -> tuple[float, float, float]:
    everything = np.concatenate(groups)
    largest = float(np.max(np.abs(everything))) or 1.0
    centre = float(np.median(everything / largest))
    return largest, centre, float(np.max(np.abs(everything / largest - centre)))


def scatters(groups: Sequence[FloatArray]) -> bool:
    """Whether standardised groups differ inside themselves by more than rounding."""
    return any(float(np.ptp(group)) > ROUNDING for group in groups)


def f_ratio(groups: Sequence[FloatArray]) -> tuple[float, float]:
    """F of a one-way analysis of variance and its p; the groups scatter inside."""
    degrees = (len(groups) - 1, sum(group.size for group in groups) - len(groups))
    means = [float(np.mean(group)) for group in groups]
    centre = float(np.mean(np.concatenate(groups)))
    inside = sum(float(np.sum((g - m) ** 2)) for g, m in zip(groups, means, strict=True))
    between = sum(g.size * (m - centre) ** 2 for g, m in zip(groups, means, strict=True))
    statistic = between / degrees[0] / (inside / degrees[1])
    return statistic, float(scipy_stats.f.sf(statistic, *degrees))


def no_scatter() -> NotComputable:
    """The answer where every group holds one value again and again."""
    return NotComputable("no scatter inside the groups: every value equals its group's others")
