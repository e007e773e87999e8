"""Define the results of the paper's tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from wattwire.stats.groups import FloatArray
from wattwire.stats.results import Interval


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


def f_ratio(groups: Sequence[FloatArray]) -> tuple[float, float]:
    """Return F and p-value of a one-way analysis of variance. Values must vary within groups."""
    degrees = (len(groups) - 1, sum(group.size for group in groups) - len(groups))
    means = [float(np.mean(group)) for group in groups]
    centre = float(np.mean(np.concatenate(groups)))
    inside = sum(float(np.sum((g - m) ** 2)) for g, m in zip(groups, means, strict=True))
    between = sum(g.size * (m - centre) ** 2 for g, m in zip(groups, means, strict=True))
    statistic = between / degrees[0] / (inside / degrees[1])
    return statistic, float(scipy.stats.f.sf(statistic, *degrees))
