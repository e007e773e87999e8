"""Define the order of the alternatives in a response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wattwire.analysis.responses import Response

LOWEST, EQUAL, OPEN, HIGHER = "lowest", "equal", "open", "higher"


@dataclass(frozen=True)
class Placed:
    """One alternative of a response. `group` is LOWEST, EQUAL, OPEN or HIGHER.

    `over_lowest` and `at_most` are at least 1. Where more is better, they are ratios of the highest
    to this alternative, and the groups have the same sense. `typical` is the geometric mean over
    the runs of this number of `treatments`.
    """

    title: str
    levels: tuple[Any, ...]
    typical: float
    over_lowest: float
    at_most: float
    group: str
    treatments: int


@dataclass(frozen=True)
class Reversal:
    """Level of another factor at which the best alternative is significantly worse than `title`.

    `ratio` is at least 1, and is that of the best alternative over all levels to `title`.
    """

    factor: str
    level: Any
    title: str
    ratio: float
    level_title: str = ""


@dataclass(frozen=True)
class Exchange:
    """Two alternatives whose order differs significantly between two levels of another factor.

    At `level`, the value of `second` is `ratio` times as bad as that of `first`. At `other_level`,
    the value of `first` is `other_ratio` times as bad as that of `second`. Both are at least 1.
    """

    first: str
    second: str
    level: Any
    ratio: float
    other_level: Any
    other_ratio: float
    level_title: str = ""
    other_level_title: str = ""


@dataclass(frozen=True)
class Saturated:
    """A ranked alternative of which `runs` of `all_runs` were saturated."""

    title: str
    runs: int
    all_runs: int


@dataclass(frozen=True)
class Choice:
    """The alternatives of a response, best first, or the reason why they are not ranked."""

    response: Response
    placed: tuple[Placed, ...]
    why_not: str = ""
    without: Mapping[str, str] = field(default_factory=dict)
    """Alternative without a rank → reason; one of its runs has no value."""
    reversals: tuple[Reversal, ...] = ()
    exchanges: Mapping[str, tuple[Exchange, ...]] = field(default_factory=dict)
    """Other factor of a question → pairs that change places between its levels, largest first."""
    saturated: tuple[Saturated, ...] = ()
    degrees: int | None = None
    """Degrees of freedom of the error of the ranking."""

    @property
    def best(self) -> Placed:
        """The best alternative of a ranking."""
        return self.placed[0]

    @property
    def leader(self) -> str:
        """The title of the best alternative; "" without a ranking."""
        return self.placed[0].title if self.placed else ""

    @property
    def equal(self) -> tuple[str, ...]:
        """The titles of the alternatives that are equivalent to the best, best first."""
        return self._titles(EQUAL)

    @property
    def open(self) -> tuple[str, ...]:
        """The titles of the alternatives that may be the best, best first."""
        return self._titles(OPEN)

    @property
    def near(self) -> tuple[str, ...]:
        """The titles of the alternatives that are not significantly worse than the best."""
        return (*self.equal, *self.open)

    @property
    def higher(self) -> tuple[Placed, ...]:
        """The alternatives that are significantly worse, best first."""
        return tuple(placed for placed in self.placed if placed.group == HIGHER)

    @property
    def nearest(self) -> Placed:
        """The significantly worse alternative with the least ratio to the best.

        The order by means over all treatments may differ from the order of the ratios.
        """
        return min(self.higher, key=_ratio)

    @property
    def farthest(self) -> Placed:
        """The significantly worse alternative with the largest ratio to the best."""
        return max(self.higher, key=_ratio)

    def _titles(self, group: str) -> tuple[str, ...]:
        return tuple(placed.title for placed in self.placed if placed.group == group)


def _ratio(placed: Placed) -> float:
    return placed.over_lowest
