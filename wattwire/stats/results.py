"""What a statistic may answer: a number with its interval, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """An estimate between two limits, in the unit of the data it came from.

    `level` is the exact confidence level of this one interval (0 to 1), `count` the number of
    independent values behind it, `degrees` the degrees of freedom (None for order statistics).
    """

    estimate: float
    low: float
    high: float
    level: float
    count: int
    method: str
    degrees: float | None = None

    def excludes(self, value: float) -> bool:
        """Whether `value` lies outside the limits."""
        return value < self.low or value > self.high

    def within(self, low: float, high: float) -> bool:
        """Whether the whole interval lies strictly between `low` and `high`."""
        return low < self.low and self.high < high


@dataclass(frozen=True)
class TooFew:
    """No number: the data do not carry one. Says what there was and what it would take."""

    found: float
    needed: float
    what: str

    def __str__(self) -> str:
        things, space, rest = self.what.partition(" ")
        what = (things.removesuffix("s") if self.found == 1 else things) + space + rest
        return f"too few: {self.found:,.0f} {what}, at least {self.needed:,.0f} needed"

    @property
    def brief(self) -> str:
        """The same in the width of a table's cell: found out of needed."""
        return f"too few ({self.found:,.0f} of {self.needed:,.0f})"


@dataclass(frozen=True)
class NotComputable:
    """No number, for a reason other than the amount of data."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class NotPositive(NotComputable):
    """No logarithm, so no ratio of geometric means: `found` of `runs` are zero or negative."""

    found: int
    runs: int


@dataclass(frozen=True)
class BelowResolution:
    """A difference that this experiment could not have seen; the truth is at most `limit`."""

    limit: float
    level: float
    count: int

    def __str__(self) -> str:
        return f"below resolution: ≤ {self.limit:.3g}"
