"""Determine the verdicts of a comparison: worse, not worse or cannot tell.

Each response and the whole comparison have a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from wattwire import stats
from wattwire.analysis.comparing.notes import AcrossMachines, Note
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


class Method(Enum):
    """Method by which the intervals of a comparison are computed."""

    PAIRED_BLOCKS = auto()
    """t interval on the log ratios of two runs of the same block."""
    TWO_OCCASIONS = auto()
    """Welch's t on the logarithms of unpaired runs."""


class Cause(Enum):
    """Reason for a verdict, without a number."""

    NO_SCATTER = auto()
    """All runs of a side have the same value, so the ratio is exact and has no interval."""
    INCLUDES_MARGIN = auto()


@dataclass(frozen=True)
class WithinNoise:
    """The effect does not exceed the A/A noise: a |log ratio|, or a difference of shares."""

    noise: float


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

    completed: tuple[int, int]
    runs: tuple[int, int]
    base_treatment: str
    first_incomplete: Incomplete | None = None


@dataclass(frozen=True)
class OtherPlacement:
    """The nodes of base and head ran in different placements, so a difference has two causes.

    `shares` are the mean shares of the time at this `nearness` (an entry of NEARNESS).
    """

    nearness: str
    shares: tuple[float, float]


ItemReason = stats.TooFew | stats.NotComputable | Cause | WithinNoise | OtherPlacement | Completions


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


@dataclass(frozen=True)
class Judged:
    """All items of a comparison, with the confidence level of their intervals.

    `level` is the confidence level of each of the `family` intervals and tests. It is chosen so
    that all of them are simultaneously correct with probability CONFIDENCE over `looks` tests of
    each.
    `notes` state the limits of the comparison. `across` is None for campaigns of the same machine.
    """

    base: str
    heads: tuple[str, ...]
    items: tuple[Item, ...]
    margin: float
    level: float
    family: int = 1
    looks: int = 1
    method: Method = Method.PAIRED_BLOCKS
    notes: tuple[Note, ...] = ()
    across: AcrossMachines | None = None

    @property
    def shown(self) -> list[Item]:
        """The items to display: all except those that only report that every run completed."""
        return [item for item in self.items if not item.unremarkable]

    def of(self, verdict: str) -> list[Item]:
        """Return the items with this verdict."""
        return [item for item in self.items if item.verdict == verdict]

    @property
    def verdict(self) -> str:
        """The worst verdict of all items; the order is worse, cannot tell, not worse."""
        if self.of(WORSE):
            return WORSE
        return UNCLEAR if self.of(UNCLEAR) or not self.items else NOT_WORSE

    @property
    def nothing_usable(self) -> bool:
        """Whether nothing was compared because no treatment has valid runs on both sides."""
        return not any(min(item.base_runs, item.head_runs) for item in self.items)

    def detectable(self) -> dict[Response, list[float | None]]:
        """Return the smallest detectable change of each treatment, as a share, by response.

        A response that is 0 in a run has no change as a share.
        """
        by_response: dict[Response, list[float | None]] = {}
        for item in self.items:
            if item.response != COMPLETED and item.values is None:
                by_response.setdefault(item.response, []).append(item.detectable_share(self.margin))
        return by_response

    def increased_shares(self) -> list[Item]:
        """Return the items in which the head has a larger share of losses or failures."""
        return [item for item in self.items if item.shares and item.shares[1] > item.shares[0]]

    def bad(self, unclear_is_bad: bool) -> bool:
        """Return whether the check fails: an item is worse, or unclear with `unclear_is_bad`."""
        return self.verdict == WORSE or (unclear_is_bad and self.verdict == UNCLEAR)


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
        return replace(item, verdict=verdict, why=Cause.NO_SCATTER)
    if not isinstance(item.ratio, stats.Interval):
        return replace(item, verdict=UNCLEAR, why=item.ratio)
    low, high = item.ratio.low, item.ratio.high
    if math.isnan(low) or math.isnan(high):
        return replace(item, verdict=UNCLEAR, ratio=NOT_FINITE, why=NOT_FINITE)
    if flip:
        low, high = 1.0 / high, 1.0 / low if low > 0 else math.inf
    if low <= 1.0 + margin < high:
        return replace(item, verdict=UNCLEAR, why=Cause.INCLUDES_MARGIN)
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
    return replace(item, verdict=UNCLEAR, why=Cause.INCLUDES_MARGIN)


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
