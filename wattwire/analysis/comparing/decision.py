"""Verdicts of a comparison (worse, not worse, cannot tell), per response and overall."""

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
"""Largest increase of a loss or failure share that is not worse, regardless of the margin."""
Estimate = stats.Interval | stats.TooFew | stats.NotComputable
NO_RATIO = stats.NotComputable("a share, not a ratio")


@dataclass(frozen=True)
class Item:
    """One response of one treatment: the head's runs over the base's.

    `ratio` is head over base; whether more is better depends on the response. `noise` is the |log
    ratio| of the A/A control runs, None without them. `exact` is the ratio of two sides without
    scatter, which has no interval. `verdict` is one of the three; `why` gives a reason that the
    numbers do not show.
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
    """Whether every run of both sides completed; set for completion items only."""
    shares: tuple[float, float] | None = None
    """Means of base and head if the response is a share, which has a difference and no ratio."""
    difference: Estimate | None = None

    @property
    def unremarkable(self) -> bool:
        """Whether the item reports only that every run of both sides completed."""
        is_good = self.verdict == NOT_WORSE and self.all_completed
        return self.response == COMPLETED and is_good

    def detectable_share(self, margin: float) -> float | None:
        """Return the smallest harmful change that would be detected: 0.12 is a change of 12 %.

        The harm is an increase, or a decrease where more is better. It is computed for an interval
        as wide as this one, and exceeds the A/A noise floor. None without an interval, or if no
        change of any size would be detected.
        """
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

    def ratio_words(self) -> str:
        """Return the ratio, or difference of shares, with its interval, or the reason for none."""
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
        shares_text = ", ".join(f"{name} {words.percent(share)}" for name, share in sides)
        if not isinstance(self.difference, stats.Interval):
            return f"{shares_text}; {self.why or self.difference}"
        low, high = self.difference.low, self.difference.high
        limits = f" ({_points(low)} to {_points(high)})" if low < high else ""
        return f"{shares_text}; {_points(self.difference.estimate)} percentage points{limits}"


@dataclass(frozen=True)
class Judged:
    """All items of a comparison with the confidence of their intervals.

    `level` is the confidence of each of the `family` of intervals and tests, so that all of them
    hold together with CONFIDENCE over all `looks`. `notes` state what the numbers can and cannot
    show; `before` is the prefix of the first line.
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
        """The items that are listed and counted: all but those on completion of every run."""
        return [item for item in self.items if not item.unremarkable]

    def of(self, verdict: str) -> list[Item]:
        """Return the items with this verdict."""
        return [item for item in self.items if item.verdict == verdict]

    @property
    def verdict(self) -> str:
        """The worst verdict of all items, in the order worse, cannot tell, not worse."""
        if self.of(WORSE):
            return WORSE
        return UNCLEAR if self.of(UNCLEAR) or not self.items else NOT_WORSE

    @property
    def nothing_usable(self) -> bool:
        """Whether no treatment has a valid run on both sides, so that nothing was compared."""
        return not any(min(item.base_runs, item.head_runs) for item in self.items)

    def detectable(self) -> dict[Response, list[float | None]]:
        """Return the smallest detectable change of each treatment, as a share, by response."""
        by_response: dict[Response, list[float | None]] = {}
        for item in self.items:
            if item.response != COMPLETED:
                by_response.setdefault(item.response, []).append(item.detectable_share(self.margin))
        return by_response

    def detectable_words(self) -> str:
        """Return a sentence with the detectable changes by response; "" if nothing was compared."""
        phrases = [
            _detectable_phrase(response, shares) for response, shares in self.detectable().items()
        ]
        if not phrases or self.nothing_usable:
            return ""
        return (
            f"Detectable changes: {words.listed(phrases)} (the margin of "
            f"{margin_words(self.margin)} and the interval's width; more blocks detect smaller "
            "changes)."
        )

    def bad(self, unclear_is_bad: bool) -> bool:
        """Return whether the gate fails: an item is worse, or unclear and `unclear_is_bad`."""
        return self.verdict == WORSE or (unclear_is_bad and self.verdict == UNCLEAR)

    def first_line(self) -> str:
        """Return the verdict as one sentence."""
        heads_text = words.listed(list(self.heads))
        verb = "is" if len(self.heads) == 1 else "are"
        count = words.plural(len(self.shown), "comparison")
        margin = f"margin {margin_words(self.margin)}"
        if self.nothing_usable:
            sides = f"{self.base} and {heads_text}"
            sentence = f"No comparison: no treatment has valid runs of {sides}"
        elif self.verdict == WORSE:
            # Failures and losses come before higher costs.
            worse = sorted(self.of(WORSE), key=lambda item: not item.response.share)
            worse_text = "; ".join(_item_phrase(item) for item in worse[:NAMED_MAX])
            more = len(worse) - NAMED_MAX
            worse_text += f"; and {more} more" if more > 0 else ""
            where = f"in {len(worse)} of {count} ({margin})"
            sentence = f"{heads_text} {verb} worse than {self.base} {where}: {worse_text}"
        elif self.verdict == UNCLEAR:
            unclear = len(self.of(UNCLEAR))
            rest = ", none is worse" if unclear < len(self.shown) else ""
            sentence = (
                f"It is undecided whether {heads_text} {verb} worse than {self.base}: {unclear} of "
                f"{count} unclear{rest} ({margin})"
            )
        else:
            sentence = (
                f"{heads_text} {verb} not worse than {self.base} in any of {count} ({margin})"
            )
        return " ".join([f"{self.before}{sentence}.", *self.undelivered(besides=WORSE)])

    def undelivered(self, besides: str = "") -> list[str]:
        """Return sentences for shares that increased, except items with the verdict `besides`."""
        increased = [item for item in self.items if item.shares and item.shares[1] > item.shares[0]]
        phrases = [_item_phrase(item) for item in increased if item.verdict != besides]
        return [f"{phrase[:1].upper()}{phrase[1:]}." for phrase in phrases[:NAMED_MAX]]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
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
            "detectable": {
                response.column: shares for response, shares in self.detectable().items()
            },
            "items": [_item_json(item) for item in self.items],
            "notes": list(self.notes),
        }


def _item_phrase(item: Item) -> str:
    result = item.why if item.response is COMPLETED else item.ratio_words()
    return f"{item.response.title}, {item.treatment}: {result}"


def _points(share: float) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    return f"{'+' if share > 0 else ''}{words.number(100 * share, 2)}"


def share_margin(margin: float) -> float:
    """Return the largest increase of a share that is not worse: 0.01 is one percentage point."""
    return min(margin, SHARE_MARGIN)


def _detectable_phrase(response: Response, shares: Sequence[float | None]) -> str:
    known = sorted(share for share in shares if share is not None)
    direction = "decrease" if response.more_is_better else "increase"
    unit = "percentage points" if response.share else "%"
    if not known:
        return f"no change of {response.title}"
    phrase = f"{'an' if direction == 'increase' else 'a'} {direction} of {response.title} by ≥ "
    phrase += f"{words.number(100 * known[0], 2)} {unit}"
    if len(shares) > 1 and (len(known) < len(shares) or known[-1] > 1.05 * known[0]):
        least_precise = (
            f"≥ {words.number(100 * known[-1], 2)} {unit}" if len(known) == len(shares) else "none"
        )
        phrase += f" in the most precise treatment, {least_precise} in the least precise"
    return phrase


def _finite(value: float) -> float | None:
    """Return `value`, or None for infinity and NaN, which JSON cannot hold."""
    return value if math.isfinite(value) else None


def _item_json(item: Item) -> dict[str, Any]:
    ratio = item.ratio if isinstance(item.ratio, stats.Interval) else None
    by_ranks = item.by_ranks if isinstance(item.by_ranks, stats.Interval) else None
    difference = item.difference if isinstance(item.difference, stats.Interval) else None
    return {
        "treatment": item.treatment,
        "response": item.response.column,
        "head": item.head,
        "verdict": item.verdict,
        "ratio": _finite(ratio.estimate) if ratio else item.exact,
        "low": _finite(ratio.low) if ratio else None,
        "high": _finite(ratio.high) if ratio else None,
        "by_ranks": [
            _finite(v) for v in (by_ranks.estimate, by_ranks.low, by_ranks.high, by_ranks.level)
        ]
        if by_ranks
        else None,
        "shares": [_finite(share) for share in item.shares] if item.shares else None,
        "difference": [difference.estimate, difference.low, difference.high]
        if difference
        else None,
        "base_runs": item.base_runs,
        "head_runs": item.head_runs,
        "noise_factor": math.exp(item.noise) if item.noise is not None else None,
        "why": item.why or (None if ratio or difference else str(item.ratio)),
    }


def factor(value: float) -> str:
    """Return a ratio as text; infinity is "∞", which means overflow here, not loss."""
    return "∞" if math.isinf(value) else words.number(value)


def margin_words(margin: float) -> str:
    """Return a margin in percent: 5 %."""
    return f"{100 * margin:.4g} %"


def judged(item: Item, margin: float) -> Item:
    """Return the item with its verdict.

    Worse: the whole interval exceeds the margin, and the effect exceeds the A/A noise floor. Not
    worse: no part of the interval exceeds the margin.
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
        return replace(item, verdict=UNCLEAR, why="the interval includes the margin")
    if item.noise is not None and abs(math.log(item.ratio.estimate)) <= item.noise:
        noise = factor(math.exp(item.noise))
        why = f"not larger than the A/A noise ({noise} times): no difference is claimed"
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
    """Return the item that tests whether fewer of the head's runs complete than of the base's.

    `sides` are the outcomes of base and head.

    A run that died or timed out is a result, but has no CPU time: without this item, a head that
    does not work at all would be worse in no response. `reason` describes the first run that did
    not complete.
    """
    completed = [sum(outcome == "completed" for outcome in side) for side in sides]
    counts = [len(side) for side in sides]
    counts_text = (
        f"{completed[1]} of {counts[1]} completed, of {base} {completed[0]} of {counts[0]}"
    )
    counts_text += f"; first incomplete run: {reason}" if reason else ""
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
        verdict=verdict, why=counts_text, all_completed=completed == counts,
    )  # fmt: skip
