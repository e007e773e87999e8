"""Define results of statistics: an estimate with its interval, or the reason why it is missing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wattwire.model import words

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence limits, in the unit of the data.

    `level` is the exact confidence level (0 to 1) of this interval. `count` is the number of
    independent values that it is computed from. `degrees` are the degrees of freedom, or None for
    order statistics.
    """

    estimate: float
    low: float
    high: float
    level: float
    count: int
    method: str
    degrees: float | None = None

    def excludes(self, value: float) -> bool:
        """Return whether `value` is outside the limits."""
        return value < self.low or value > self.high

    def within(self, low: float, high: float) -> bool:
        """Return whether the whole interval is strictly between `low` and `high`."""
        return low < self.low and self.high < high

    def exponential(self) -> Interval:
        """Return the interval of the ratio whose logarithm this interval contains."""
        estimate, low, high = map(math.exp, (self.estimate, self.low, self.high))
        return replace(self, estimate=estimate, low=low, high=high)


@dataclass(frozen=True)
class Band:
    """A range without a point estimate."""

    low: float
    high: float

    @classmethod
    def of_means(cls, low: FloatArray, high: FloatArray) -> Band | None:
        """Return the band between the mean finite `low` and the mean finite `high`.

        `low` and `high` have shape (runs,). The result is None if one of them has no finite value.
        """
        low, high = low[np.isfinite(low)], high[np.isfinite(high)]
        return cls(float(low.mean()), float(high.mean())) if low.size and high.size else None


@dataclass(frozen=True)
class TooFew:
    """No estimate, because there are only `count` instead of `needed` data; `what` is the unit."""

    count: float
    needed: float
    what: str

    def __str__(self) -> str:
        noun, space, rest = self.what.partition(" ")
        singular = noun.removesuffix("s") + space + rest
        needed = f"and at least {words.count(self.needed)} are needed"
        if self.count == 1:
            return f"there is only 1 {singular}, {needed}"
        return f"there are only {words.count(self.count)} {self.what}, {needed}"

    @property
    def brief(self) -> str:
        """Return a short text for a table cell, with the available and the required number."""
        return f"too few ({words.count(self.count)} of {words.count(self.needed)})"


@dataclass(frozen=True)
class NotComputable:
    """No estimate, for a reason other than the amount of data."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Never(NotComputable):
    """No estimate of a share, because it is 0 in every run; this is a result, not a gap."""


@dataclass(frozen=True)
class NotPositive(NotComputable):
    """No ratio of geometric means, because `count` of `runs` values are not positive."""

    count: int
    runs: int


@dataclass(frozen=True)
class Exact(NotComputable):
    """No interval, because neither side scatters: `level` and `baseline` are their mean values.

    Each of `pairs` has both sides in one of `blocks` blocks.
    """

    level: float
    baseline: float
    pairs: int
    blocks: int


@dataclass(frozen=True)
class BelowResolution:
    """A difference that is too small to detect. The true value is at most `limit`."""

    limit: float
    level: float
    count: int

    def __str__(self) -> str:
        return f"below resolution: ≤ {self.limit:.3g}"
