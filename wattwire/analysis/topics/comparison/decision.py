"""Decide whether the head is worse than the base in a response: worse, not worse or cannot tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from wattwire import stats
from wattwire.analysis.responses import Response

WORSE, NOT_WORSE, UNCLEAR = "worse", "not worse", "cannot tell"
MARGIN = 0.05
COMPLETED = Response("completed", "runs completed", "", share=True)
SHARE_MARGIN = 0.01
"""Largest increase of a loss or failure share that is not worse, regardless of the margin."""
Estimate = stats.Interval | stats.TooFew | stats.NotComputable
NO_RATIO = stats.NotComputable("a share, not a ratio")
NOT_FINITE = stats.NotComputable("the estimate or a limit of its interval is no finite number")
FROM_ZERO = stats.NotComputable("0 in at least one run, so there is no ratio")
NO_SCATTER = "no scatter"
"""All runs of a side have the same value, so the ratio is exact and has no interval."""
INCLUDES_MARGIN = "includes margin"
"""The interval includes the margin."""


@dataclass(frozen=True)
class WithinNoise:
    """The effect does not exceed the A/A noise: a |log ratio|, or a difference of shares."""

    kind: ClassVar[str] = "within noise"
    noise: float

    @property
    def factor(self) -> float:
        """The noise as a ratio of at least 1."""
        return math.exp(self.noise)

    @property
    def points(self) -> float:
        """The noise of shares, in percentage points."""
        return 100 * self.noise


@dataclass(frozen=True)
class Incomplete:
    """Outcome of the first run that did not complete, with its detail, which may be empty."""

    outcome: str
    detail: str


@dataclass(frozen=True)
class Completions:
    """The numbers of completed runs and of all runs, each for base and head.

    Items with the same `base_treatment` have the same runs of the base.
    """

    kind: ClassVar[str] = "completions"
    completed: tuple[int, int]
    runs: tuple[int, int]
    base_treatment: str
    first_incomplete: Incomplete | None = None


@dataclass(frozen=True)
class OtherPlacement:
    """The nodes of base and head ran in different placements, so a difference has two causes.

    `shares` are the mean shares of the time at this `nearness` (an entry of NEARNESS).
    """

    kind: ClassVar[str] = "other placement"
    nearness: str
    shares: tuple[float, float]


ItemReason = str | stats.TooFew | stats.NotComputable | WithinNoise | OtherPlacement | Completions
"""NO_SCATTER, INCLUDES_MARGIN, or a reason with numbers."""


@dataclass(frozen=True)
class Item:
    """Comparison of one response of one treatment between the head's and the base's runs.

    `ratio` is head over base; the response determines whether more is better. `noise` is the |log
    ratio| of the A/A control runs, or None without such runs. `exact` is the ratio of two sides
    without scatter, for which no interval exists. `verdict` is one of the three verdicts. `why` is
    a reason that the numbers do not show, or None.
    """

    treatment: str
    response: Response
    base: str
    head: str
    ratio: Estimate
    by_ranks: Estimate | None = None
    base_runs: int = 0
    head_runs: int = 0
    noise: float | None = None
    exact: float | None = None
    verdict: str = UNCLEAR
    why: ItemReason | None = None
    shares: tuple[float, float] | None = None
    """Means of base and head if the response is a share, which has a difference and no ratio."""
    difference: Estimate | None = None
    values: tuple[float, float] | None = None
    """Means of base and head if the response is 0 in a run, which has no ratio either."""

    @property
    def reason(self) -> str:
        """What `why` is: "other" for the reason why there is no number, "" without a reason."""
        if isinstance(self.why, str):
            return self.why
        return "" if self.why is None else getattr(self.why, "kind", "other")

    @property
    def has_interval(self) -> bool:
        """Whether the item has an interval, of its difference or else of its ratio."""
        return isinstance(self.difference or self.ratio, stats.Interval)

    @property
    def points(self) -> stats.Interval | None:
        """The difference of shares in percentage points, or None without an interval."""
        difference = self.difference
        if not isinstance(difference, stats.Interval):
            return None
        centre, low, high = (
            100 * share for share in (difference.estimate, difference.low, difference.high)
        )
        return replace(difference, estimate=centre, low=low, high=high)

    @property
    def shown_ratio(self) -> Estimate | float | None:
        """The ratio, without an interval if it is exact; None for shares."""
        if self.shares:
            return None
        return self.ratio if self.exact is None else self.exact

    @property
    def rank_level(self) -> float | None:
        """The exact confidence level of the ratio by ranks, in percent, or None without one."""
        return 100 * self.by_ranks.level if isinstance(self.by_ranks, stats.Interval) else None

    @property
    def runs(self) -> int:
        """The number of runs of both sides."""
        return self.base_runs + self.head_runs

    @property
    def unremarkable(self) -> bool:
        """Whether the item reports only that all runs of both sides completed."""
        why = self.why
        every_run = isinstance(why, Completions) and why.completed == why.runs
        return every_run and self.verdict == NOT_WORSE

    def detectable_share(self, margin: float) -> float | None:
        """Return the smallest harmful change that would be detected; 0.12 is a change of 12 %.

        A harmful change is an increase, or a decrease if more is better. The result applies to an
        interval of the same width and exceeds the A/A noise floor. It is None without an interval,
        or if no change of any size would be detected.
        """
        if isinstance(self.why, OtherPlacement):
            return None
        if self.shares is not None:
            difference = self.difference
            if not isinstance(difference, stats.Interval):
                return None
            return share_margin(margin) + difference.estimate - difference.low
        if self.exact is not None:
            return margin
        if not isinstance(self.ratio, stats.Interval):
            return None
        centre, low, high = self.ratio.estimate, self.ratio.low, self.ratio.high
        flip = self.response.more_is_better
        if not (0.0 < low <= centre <= high < math.inf):
            return None
        smallest_factor = (1.0 + margin) * (high / centre if flip else centre / low)
        smallest_factor = max(smallest_factor, math.exp(self.noise or 0.0))
        return 1.0 - 1.0 / smallest_factor if flip else smallest_factor - 1.0


def share_margin(margin: float) -> float:
    """Return the largest increase of a share that is not worse; 0.01 is one percentage point."""
    return min(margin, SHARE_MARGIN)


def is_finite(interval: stats.Interval) -> bool:
    """Return whether the estimate and both limits of a difference are finite."""
    return all(map(math.isfinite, (interval.estimate, interval.low, interval.high)))


def judged(item: Item, margin: float) -> Item:
    """Return the item with its verdict.

    Worse: the whole interval is beyond the margin, and the effect exceeds the A/A noise floor. Not
    worse: the whole interval is within the margin.
    """
    flip = item.response.more_is_better
    if item.values is not None:
        return _judged_from_zero(item, margin * item.values[0])
    if item.exact is not None and (math.isinf(item.exact) or not item.exact > 0):
        return replace(item, verdict=UNCLEAR, exact=None, ratio=NOT_FINITE, why=NOT_FINITE)
    if item.exact is not None:
        harm = 1.0 / item.exact if flip else item.exact
        verdict = WORSE if harm > 1.0 + margin else NOT_WORSE
        return replace(item, verdict=verdict, why=NO_SCATTER)
    if not isinstance(item.ratio, stats.Interval):
        return replace(item, verdict=UNCLEAR, why=item.ratio)
    low, high = item.ratio.low, item.ratio.high
    if math.isnan(low) or math.isnan(high):
        return replace(item, verdict=UNCLEAR, ratio=NOT_FINITE, why=NOT_FINITE)
    if flip:
        low, high = 1.0 / high, 1.0 / low if low > 0 else math.inf
    if low <= 1.0 + margin < high:
        return replace(item, verdict=UNCLEAR, why=INCLUDES_MARGIN)
    if not 0 < item.ratio.estimate < math.inf:
        return replace(item, verdict=UNCLEAR, why=NOT_FINITE)
    if high <= 1.0 + margin:
        return replace(item, verdict=NOT_WORSE)
    if item.noise is not None and abs(math.log(item.ratio.estimate)) <= item.noise:
        return replace(item, verdict=UNCLEAR, why=WithinNoise(item.noise))
    return replace(item, verdict=WORSE)


def _judged_from_zero(item: Item, allowed: float) -> Item:
    """Return the item with its verdict: worse if the whole interval is above the allowed harm.

    `allowed` is the margin of the base's mean, so it is 0 for a base of 0.
    """
    difference = item.difference
    if not isinstance(difference, stats.Interval):
        return replace(item, verdict=UNCLEAR, why=difference)
    if not is_finite(difference):
        return replace(item, verdict=UNCLEAR, difference=NOT_FINITE, why=NOT_FINITE)
    low, high = difference.low, difference.high
    if item.response.more_is_better:
        low, high = -high, -low
    if high <= allowed:
        return replace(item, verdict=NOT_WORSE)
    if low > allowed:
        return replace(item, verdict=WORSE)
    return replace(item, verdict=UNCLEAR, why=INCLUDES_MARGIN)


def judged_share(item: Item, noise: float | None, margin: float) -> Item:
    """Return the item with its verdict, by the same rules as for ratios.

    `noise` is the noise floor as a difference of shares.
    """
    difference, margin_of_share = item.difference, share_margin(margin)
    if not isinstance(difference, stats.Interval):
        return replace(item, verdict=UNCLEAR, why=difference)
    if not is_finite(difference):
        return replace(item, verdict=UNCLEAR, difference=NOT_FINITE, why=NOT_FINITE)
    if difference.high <= margin_of_share:
        return replace(item, verdict=NOT_WORSE)
    if difference.low <= margin_of_share:
        return replace(item, verdict=UNCLEAR, why=INCLUDES_MARGIN)
    if noise is not None and difference.estimate <= noise:
        return replace(item, verdict=UNCLEAR, why=WithinNoise(noise))
    return replace(item, verdict=WORSE)


def completion(
    treatment: str,
    base: str,
    head: str,
    sides: tuple[Sequence[str], Sequence[str]],
    level: float,
    first_incomplete: Incomplete | None = None,
    base_treatment: str = "",
) -> Item:
    """Return the item that tests whether a smaller share of the head's runs completed.

    `sides` are the outcomes of base and head. `first_incomplete` is the first run that did not
    complete. `base_treatment` is the treatment of the base's runs, by default `treatment`.

    A run that died or timed out is a result without a CPU time. Without this item, a head that does
    not work at all would not be worse in any response.
    """
    completed = [sum(outcome == "completed" for outcome in side) for side in sides]
    counts = [len(side) for side in sides]
    verdict = UNCLEAR
    if min(counts) > 0:
        shares = [completed[side] / counts[side] for side in (0, 1)]
        p = stats.same_share_p(completed[1], counts[1], completed[0], counts[0])
        none_works = shares == [1.0, 0.0] and min(counts) > 1
        if shares[1] >= shares[0]:
            verdict = NOT_WORSE
        elif none_works or p < 1.0 - level:
            verdict = WORSE
    no_ratio = stats.NotComputable("a count, not a ratio")
    return Item(
        treatment, COMPLETED, base, head, no_ratio, None, counts[0], counts[1],
        verdict=verdict,
        why=Completions(
            (completed[0], completed[1]), (counts[0], counts[1]), base_treatment or treatment,
            first_incomplete,
        ),
    )  # fmt: skip
