"""Worse, not worse, cannot tell: how one response of one treatment is judged, and all together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from wattwire import stats
from wattwire.analysis.responses import Response
from wattwire.model import words

WORSE, NOT_WORSE, UNCLEAR = "worse", "not worse", "cannot tell"
CONFIDENCE = 0.95
MARGIN = 0.05
COMPLETED = Response("completed", "runs completed", "", share=True)
NAMED_MAX = 3
SHARE_MARGIN = 0.01
"""What may be lost or fail more without being worse, whatever the margin of ratios is."""
Estimate = stats.Interval | stats.TooFew | stats.NotComputable
NO_RATIO = stats.NotComputable("a share, not a ratio")


@dataclass(frozen=True)
class Item:
    """One response of one treatment: the head's runs over the base's.

    `ratio` is head over base, in the response's own sense. `noise` is the |log ratio| of two
    identical labels, None where there were none. `exact` is the ratio of two sides without any
    scatter, for which there is no interval. `verdict` is one of the three, `why` says whatever
    the numbers do not.
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
    why: str = ""
    all_completed: bool = True
    """Whether every run of both sides ended as it should, where the item is about that."""
    shares: tuple[float, float] | None = None
    """The means of base and head, where the response is a share: it has a difference, no ratio."""
    difference: Estimate | None = None

    @property
    def unremarkable(self) -> bool:
        """Whether it says no more than that every run of both sides completed."""
        is_good = self.verdict == NOT_WORSE and self.all_completed
        return self.response == COMPLETED and is_good

    def detectable_share(self, margin: float) -> float | None:
        """Return the smallest harm that would have been worse: 0.12 is 12 % more, or less.

        With an interval as wide as this one, and beyond what two identical labels may differ by.
        None where there is no interval, or where no change of any size would do.
        """
        if self.shares is not None:
            apart = self.difference
            if not isinstance(apart, stats.Interval):
                return None
            return share_margin(margin) + apart.estimate - apart.low
        if self.exact is not None:
            return margin
        if not isinstance(self.ratio, stats.Interval):
            return None
        centre, low, high = self.ratio.estimate, self.ratio.low, self.ratio.high
        flip = self.response.more_is_better
        if not (0.0 < low <= centre <= high < math.inf):
            return None
        least = (1.0 + margin) * (high / centre if flip else centre / low)
        least = max(least, math.exp(self.noise or 0.0))
        return 1.0 - 1.0 / least if flip else least - 1.0

    def ratio_words(self) -> str:
        """The ratio with its limits (of shares their difference), or why there is none."""
        if self.shares is not None:
            return self._share_words(self.shares)
        if isinstance(self.ratio, stats.Interval):
            low, high = factor(self.ratio.low), factor(self.ratio.high)
            return f"{factor(self.ratio.estimate)} times ({low} to {high})"
        if self.exact is not None:
            return f"{factor(self.exact)} times"
        return self.why or str(self.ratio)

    def _share_words(self, shares: tuple[float, float]) -> str:
        sides = zip((self.head, self.base), reversed(shares), strict=True)
        told = ", ".join(f"{name} {words.percent(share)}" for name, share in sides)
        if not isinstance(self.difference, stats.Interval):
            return f"{told}; {self.why or self.difference}"
        low, high = self.difference.low, self.difference.high
        limits = f" ({_points(low)} to {_points(high)})" if low < high else ""
        return f"{told}; {_points(self.difference.estimate)} percentage points{limits}"


@dataclass(frozen=True)
class Judged:
    """Every item of a comparison and what its intervals hold with.

    `level` is the confidence of each of the `family` of intervals and tests, so that all of them
    hold together with CONFIDENCE over all `looks`. `notes` say what the numbers can and cannot;
    `before` stands at the very beginning of the first line.
    """

    base: str
    heads: tuple[str, ...]
    items: tuple[Item, ...]
    margin: float
    level: float
    family: int = 1
    looks: int = 1
    method: str = ""
    notes: tuple[str, ...] = ()
    before: str = ""

    @property
    def shown(self) -> list[Item]:
        """The items that a reader sees and a sentence counts: all but "every run completed"."""
        return [item for item in self.items if not item.unremarkable]

    def of(self, verdict: str) -> list[Item]:
        """The items with that verdict."""
        return [item for item in self.items if item.verdict == verdict]

    @property
    def verdict(self) -> str:
        """The worst of all: worse, cannot tell, not worse."""
        if self.of(WORSE):
            return WORSE
        return UNCLEAR if self.of(UNCLEAR) or not self.items else NOT_WORSE

    @property
    def nothing_usable(self) -> bool:
        """Whether no treatment has a valid run on both sides, so that nothing was compared."""
        return not any(min(item.base_runs, item.head_runs) for item in self.items)

    def detectable(self) -> dict[Response, list[float | None]]:
        """For each response: the smallest change that each treatment could have shown."""
        found: dict[Response, list[float | None]] = {}
        for item in self.items:
            if item.response != COMPLETED:
                found.setdefault(item.response, []).append(item.detectable_share(self.margin))
        return found

    def detectable_words(self) -> str:
        """What this gate could have detected, by response; "" where nothing was compared."""
        told = [_detectable(response, found) for response, found in self.detectable().items()]
        if not told or self.nothing_usable:
            return ""
        return (
            f"This gate could have detected {words.listed(told)} (the margin of "
            f"{margin_words(self.margin)} and the interval's width; more blocks detect less)."
        )

    def bad(self, unclear_is_bad: bool) -> bool:
        """Whether whoever asked should stop: something is worse, or unclear where that counts."""
        return self.verdict == WORSE or (unclear_is_bad and self.verdict == UNCLEAR)

    def first_line(self) -> str:
        """The answer in plain words."""
        head = words.listed(list(self.heads))
        verb = "is" if len(self.heads) == 1 else "are"
        count = words.plural(len(self.shown), "comparison")
        margin = f"margin {margin_words(self.margin)}"
        if self.nothing_usable:
            both = f"{self.base} and {head}"
            said = f"Nothing could be compared: no treatment has valid runs of {both}"
        elif self.verdict == WORSE:
            # What does not work stands before what costs more.
            worse = sorted(self.of(WORSE), key=lambda item: not item.response.share)
            told = "; ".join(_named(item) for item in worse[:NAMED_MAX])
            more = len(worse) - NAMED_MAX
            told += f"; and {more} more" if more > 0 else ""
            where = f"in {len(worse)} of {count} ({margin})"
            said = f"{head} {verb} worse than {self.base} {where}: {told}"
        elif self.verdict == UNCLEAR:
            unclear = len(self.of(UNCLEAR))
            rest = ", none is worse" if unclear < len(self.shown) else ""
            said = (
                f"It cannot be told whether {head} {verb} worse than {self.base}: "
                f"{unclear} of {count} unclear{rest} ({margin})"
            )
        else:
            said = f"{head} {verb} not worse than {self.base} in any of {count} ({margin})"
        return " ".join([f"{self.before}{said}.", *self.undelivered(besides=WORSE)])

    def undelivered(self, besides: str = "") -> list[str]:
        """Sentences on what heads lost or failed more than the base, unless the verdict is one."""
        more = [item for item in self.items if item.shares and item.shares[1] > item.shares[0]]
        named = [_named(item) for item in more if item.verdict != besides]
        return [f"{one[:1].upper()}{one[1:]}." for one in named[:NAMED_MAX]]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values, for machines."""
        return {
            "verdict": self.verdict,
            "first_line": self.first_line(),
            "base": self.base,
            "heads": list(self.heads),
            "margin": self.margin,
            "level_together": CONFIDENCE,
            "level_of_each": self.level,
            "family": self.family,
            "looks": self.looks,
            "method": self.method,
            "nothing_usable": self.nothing_usable,
            "detectable": {response.column: found for response, found in self.detectable().items()},
            "items": [_item_json(item) for item in self.items],
            "notes": list(self.notes),
        }


def _named(item: Item) -> str:
    told = item.why if item.response is COMPLETED else item.ratio_words()
    return f"{item.response.title}, {item.treatment}: {told}"


def _points(share: float) -> str:
    return f"{'+' if share > 0 else ''}{words.number(100 * share, 2)}"


def share_margin(margin: float) -> float:
    """By how much a share of losses may grow without being worse: 0.01 is a percentage point."""
    return min(margin, SHARE_MARGIN)


def _detectable(response: Response, found: Sequence[float | None]) -> str:
    known = sorted(share for share in found if share is not None)
    way = "decrease" if response.more_is_better else "increase"
    unit = "percentage points" if response.share else "%"
    if not known:
        return f"no change of {response.title}"
    told = f"{'an' if way == 'increase' else 'a'} {way} of {response.title} by ≥ "
    told += f"{words.number(100 * known[0], 2)} {unit}"
    if len(found) > 1 and (len(known) < len(found) or known[-1] > 1.05 * known[0]):
        most = (
            f"≥ {words.number(100 * known[-1], 2)} {unit}" if len(known) == len(found) else "none"
        )
        told += f" in the most precise treatment, {most} in the least precise"
    return told


def _finite(value: float) -> float | None:
    """JSON has no word for a limit beyond all numbers."""
    return value if math.isfinite(value) else None


def _item_json(item: Item) -> dict[str, Any]:
    found = item.ratio if isinstance(item.ratio, stats.Interval) else None
    ranks = item.by_ranks if isinstance(item.by_ranks, stats.Interval) else None
    apart = item.difference if isinstance(item.difference, stats.Interval) else None
    return {
        "treatment": item.treatment,
        "response": item.response.column,
        "head": item.head,
        "verdict": item.verdict,
        "ratio": _finite(found.estimate) if found else item.exact,
        "low": _finite(found.low) if found else None,
        "high": _finite(found.high) if found else None,
        "by_ranks": [_finite(v) for v in (ranks.estimate, ranks.low, ranks.high, ranks.level)]
        if ranks
        else None,
        "shares": [_finite(share) for share in item.shares] if item.shares else None,
        "difference": [apart.estimate, apart.low, apart.high] if apart else None,
        "base_runs": item.base_runs,
        "head_runs": item.head_runs,
        "noise_factor": math.exp(item.noise) if item.noise is not None else None,
        "why": item.why or (None if found or apart else str(item.ratio)),
    }


def factor(value: float) -> str:
    """A ratio in words; one beyond all numbers is just that, and no loss."""
    return "∞" if math.isinf(value) else words.number(value)


def margin_words(margin: float) -> str:
    """A margin as it is typed: 5 %."""
    return f"{100 * margin:.4g} %"


def judged(item: Item, margin: float) -> Item:
    """The item with its verdict. Worse: the whole interval lies beyond the margin, and the effect
    beyond what two identical labels may differ by. Not worse: none of it lies beyond the margin.
    """
    flip = item.response.more_is_better
    if item.exact is not None:
        harm = 1.0 / item.exact if flip else item.exact
        verdict = WORSE if harm > 1.0 + margin else NOT_WORSE
        return replace(item, verdict=verdict, why="the same in every run of a side: no interval")
    if not isinstance(item.ratio, stats.Interval):
        return replace(item, verdict=UNCLEAR, why=str(item.ratio))
    low, high = item.ratio.low, item.ratio.high
    if flip:
        low, high = 1.0 / high, 1.0 / low
    if high <= 1.0 + margin:
        return replace(item, verdict=NOT_WORSE)
    if low <= 1.0 + margin:
        return replace(item, verdict=UNCLEAR, why="the interval reaches across the margin")
    if item.noise is not None and abs(math.log(item.ratio.estimate)) <= item.noise:
        by = factor(math.exp(item.noise))
        why = f"two identical labels may differ by as much ({by} times): no difference is claimed"
        return replace(item, verdict=UNCLEAR, why=why)
    return replace(item, verdict=WORSE)


def completion(
    treatment: str,
    base: str,
    head: str,
    sides: tuple[Sequence[str], Sequence[str]],
    level: float,
    reason: str = "",
) -> Item:
    """Whether the head's runs end worse than the base's; `sides` are the outcomes, base first.

    A run that died or timed out is a result, and has no CPU time: without this item a head that
    does not work at all would have nothing to be worse in. `reason` says why the first one
    ended so.
    """
    good = [sum(outcome == "completed" for outcome in side) for side in sides]
    counts = [len(side) for side in sides]
    told = f"{good[1]} of {counts[1]} completed, of {base} {good[0]} of {counts[0]}"
    told += f"; the first that did not: {reason}" if reason else ""
    verdict = UNCLEAR
    if min(counts) > 0:
        shares = [good[at] / counts[at] for at in (0, 1)]
        p = stats.same_share_p(good[1], counts[1], good[0], counts[0])
        nothing_works = shares == [1.0, 0.0] and min(counts) > 1
        if shares[1] >= shares[0]:
            verdict = NOT_WORSE
        elif nothing_works or p < 1.0 - level:
            verdict = WORSE
    pending = stats.NotComputable("a count, not a ratio")
    return Item(
        treatment, COMPLETED, base, head, pending, None, counts[0], counts[1],
        verdict=verdict, why=told, all_completed=good == counts,
    )  # fmt: skip
