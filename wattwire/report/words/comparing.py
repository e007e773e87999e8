"""Sentences on the result of a comparison, its items and the reasons for verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wattwire import stats
from wattwire.analysis.comparing.common import Wanted
from wattwire.analysis.comparing.decision import (
    UNCLEAR,
    WORSE,
    Cause,
    Completions,
    Item,
    Judged,
    Method,
    OtherPlacement,
    WithinNoise,
)
from wattwire.analysis.comparing.notes import AcrossMachines
from wattwire.analysis.comparing.within_campaign import compare_inside
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import Response
from wattwire.model import words
from wattwire.model.errors import UsageError
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "comparing",
    {
        # The first line.
        "no_verdict": "The variants cannot be compared: {reason}",
        "across": (
            "The comparison is across machines ({reason}), so the machine may cause the "
            "difference. "
        ),
        "no_record": "no machine record of {campaigns:listed}",
        "fact": "{key}: {base} against {head}",
        "none": "none",
        "nothing_usable": (
            "No comparison is possible, because no treatment has valid runs of {base} and "
            "{heads:listed}"
        ),
        "worse": (
            "{heads:listed} {verb} worse than {base} in {worse} of {items:plural comparison} "
            "(margin {margin:margin}): {named}{rest}"
        ),
        "undecided": (
            "It is undecided whether {heads:listed} {verb} worse than {base}, because "
            "{unclear} of {items:plural comparison} gave no clear result{reason}{rest} (margin "
            "{margin:margin})"
        ),
        "not_worse": (
            "{heads:listed} {verb} not worse than {base} in any of {items:plural comparison} "
            "(margin {margin:margin})"
        ),
        "is": "is",
        "are": "are",
        "more": "; and {more} more",
        "none_worse": " and none is worse",
        "no_interval": ": {reason}",
        "sentence": "{before}{result}.",
        "increased": "{item:capital}.",
        # An item.
        "item": "{response}, {treatment}: {result}",
        "ratio": "{ratio:factor} times ({low:factor} to {high:factor})",
        "exact": "{ratio:factor} times",
        "shares": "{head} {head_share:percent}, {base} {base_share:percent}; {difference}",
        "values": (
            "{head} {head_value:number}{unit}, {base} {base_value:number}{unit}; {difference}"
        ),
        "value_difference": "a difference of {change:number}{unit}",
        "value_interval": ("a difference of {change:number}{unit} ({low:number} to {high:number})"),
        "difference": "{points:points} percentage points",
        "difference_interval": (
            "{points:points} percentage points ({low:points} to {high:points})"
        ),
        "result_with_reason": "{result}; {reason}",
        # Reasons for a verdict.
        "reason": "{reason}",
        "no_scatter": ("there is no interval, because all runs of one side have the same value"),
        "includes_margin": "the interval includes the margin",
        "within_noise": (
            "no difference is claimed, because the result is not larger than the A/A noise ("
            "{noise:factor} times)"
        ),
        "within_noise_share": (
            "no difference is claimed, because the result is not larger than the A/A noise ("
            "{points:.2g} percentage points)"
        ),
        "completions": (
            "{head_completed} of {head_runs:plural run} completed, compared with "
            "{base_completed} of {base_runs} of {base}{first_incomplete}"
        ),
        "first_incomplete": "; first incomplete run: {outcome}",
        "first_incomplete_detail": "; first incomplete run: {outcome}, {detail}",
        "other_placement": (
            "there is no verdict, because the nodes ran in different placements: they {place} in "
            "{head_share:percent} of the time of {head} and {base_share:percent} of {base}"
        ),
        "other_placements": (
            "In {comparisons:plural comparison}, the nodes ran in different placements, which may "
            'cause any difference; measure both sides with cores = "same" or "apart".'
        ),
        # Changes that the comparison detects.
        "detectable": (
            "Detectable changes, given the margin of {margin:margin} and the widths of the "
            "intervals: {changes:listed}. More {sample} detect smaller changes."
        ),
        "blocks": "blocks",
        "runs": "runs",
        "no_change": "none of {response}",
        "increase": ("an increase of {response} by at least {change:number 2} {unit}{range}"),
        "decrease": ("a decrease of {response} by at least {change:number 2} {unit}{range}"),
        "range": (" in the most precise treatment, and {least_precise} in the least precise"),
        "at_least": "at least {change:number 2} {unit}",
        # Methods.
        "paired_blocks": (
            "t intervals on the log ratios of runs of the same block, one pair per block; the "
            "variance is that of the treatment's own ratios, or the mean variance of all "
            "treatments if this is larger and the variances do not differ significantly "
            "(Bartlett's test at {different_p:percent})"
        ),
        "two_occasions": (
            "Welch's t intervals on the logarithms of run summaries, with unpaired runs from two "
            "occasions"
        ),
    },
)

NAMED_MAX = 3
NO_INTERVAL = (stats.TooFew, stats.NotComputable)


def verdict(evidence: Evidence) -> Phrase:
    """Return the first line on the variants of a study, or the reason for its absence."""
    try:
        return first_line(compare_inside(evidence, Wanted()))
    except UsageError as error:
        return PHRASES("no_verdict", reason=str(error))


def first_line(judged: Judged) -> Phrase:
    """Return a sentence on the verdict, followed by a sentence per increased share."""
    result = PHRASES("sentence", before=_across(judged.across), result=_result(judged))
    is_precise = judged.verdict == UNCLEAR and not _common_reason(judged)
    smallest = detectable(judged) if is_precise else ""
    placements = sum(isinstance(item.why, OtherPlacement) for item in judged.items)
    placed_apart = PHRASES("other_placements", comparisons=placements) if placements else ""
    return joined([result, placed_apart, smallest, *undelivered(judged, besides=WORSE)])


def _across(machines: AcrossMachines | None) -> Phrase:
    if machines is None:
        return Phrase()
    if machines.unknown:
        return PHRASES("across", reason=PHRASES("no_record", campaigns=machines.unknown))
    facts = [
        PHRASES("fact", key=fact.key, base=_value(fact.base), head=_value(fact.head))
        for fact in machines.differences
    ]
    return PHRASES("across", reason=joined(facts, "; "))


def _value(value: object) -> object:
    return PHRASES("none") if value is None else value


def _result(judged: Judged) -> Phrase:
    heads, base, margin = judged.heads, judged.base, judged.margin
    if judged.nothing_usable:
        return PHRASES("nothing_usable", base=base, heads=heads)
    verb, items = PHRASES("is" if len(heads) == 1 else "are"), len(judged.shown)
    if judged.verdict == WORSE:
        # Failures and losses precede higher costs.
        worse = sorted(judged.of(WORSE), key=lambda item: not item.response.share)
        more = len(worse) - NAMED_MAX
        return PHRASES(
            "worse",
            heads=heads,
            verb=verb,
            base=base,
            worse=len(worse),
            items=items,
            margin=margin,
            named=joined([_item(item) for item in worse[:NAMED_MAX]], "; "),
            rest=PHRASES("more", more=more) if more > 0 else "",
        )
    if judged.verdict == UNCLEAR:
        unclear = len(judged.of(UNCLEAR))
        return PHRASES(
            "undecided",
            heads=heads,
            verb=verb,
            base=base,
            unclear=unclear,
            items=items,
            reason=_common_reason(judged),
            rest=PHRASES("none_worse") if unclear < items else "",
            margin=margin,
        )
    return PHRASES("not_worse", heads=heads, verb=verb, base=base, items=items, margin=margin)


def _common_reason(judged: Judged) -> Phrase:
    """Return the reason why no undecided item has an interval, or "" without a common reason."""
    reasons = {item.why for item in judged.of(UNCLEAR)}
    if len(reasons) > 1 or not all(isinstance(why, NO_INTERVAL) for why in reasons):
        return Phrase()
    return joined([PHRASES("no_interval", reason=why) for why in reasons])


def undelivered(judged: Judged, besides: str = "") -> list[Phrase]:
    """Return sentences on increased shares, except for items with the verdict `besides`."""
    increased = [item for item in judged.increased_shares() if item.verdict != besides]
    return [PHRASES("increased", item=_item(item)) for item in increased[:NAMED_MAX]]


def _item(item: Item) -> Phrase:
    result = why(item) if isinstance(item.why, Completions) else result_of(item)
    return PHRASES("item", response=item.response.title, treatment=item.treatment, result=result)


def result_of(item: Item) -> Phrase:
    """Return the ratio, or the shares and their difference, with an interval or a reason."""
    if item.shares is not None:
        base_share, head_share = item.shares
        return PHRASES(
            "shares",
            head=item.head,
            head_share=head_share,
            base=item.base,
            base_share=base_share,
            difference=_difference(item),
        )
    if item.values is not None:
        return _values(item, *item.values)
    if isinstance(item.ratio, stats.Interval):
        ratio = item.ratio
        return PHRASES("ratio", ratio=ratio.estimate, low=ratio.low, high=ratio.high)
    if item.exact is not None:
        return PHRASES("exact", ratio=item.exact)
    return why(item) or PHRASES("reason", reason=item.ratio)


def _values(item: Item, base: float, head: float) -> Phrase:
    """Return both means and their difference, of a response that is 0 in a run."""
    difference, unit = item.difference, f" {item.response.unit}" if item.response.unit else ""
    if not isinstance(difference, stats.Interval):
        change = why(item) or PHRASES("reason", reason=difference)
    elif difference.low < difference.high:
        low, high = difference.low, difference.high
        change = PHRASES(
            "value_interval", change=difference.estimate, unit=unit, low=low, high=high
        )
    else:
        change = PHRASES("value_difference", change=difference.estimate, unit=unit)
    return PHRASES(
        "values", head=item.head, head_value=head, unit=unit, base=item.base, base_value=base,
        difference=change,
    )  # fmt: skip


def _difference(item: Item) -> Phrase:
    difference = item.difference
    if not isinstance(difference, stats.Interval):
        return why(item) or PHRASES("reason", reason=difference)
    points, low, high = (
        100 * share for share in (difference.estimate, difference.low, difference.high)
    )
    if low < high:
        return PHRASES("difference_interval", points=points, low=low, high=high)
    return PHRASES("difference", points=points)


def result_and_reason(item: Item) -> Phrase:
    """Return the result of an item and the reason for its verdict."""
    if isinstance(item.why, Completions):
        return why(item)
    if isinstance(item.difference or item.ratio, stats.Interval) and item.why is not None:
        return PHRASES("result_with_reason", result=result_of(item), reason=why(item))
    return result_of(item)


def why(item: Item) -> Phrase:
    """Return the reason for an item's verdict, or "" if it has no reason."""
    reason = item.why
    if reason is None:
        return Phrase()
    if isinstance(reason, Cause):
        return PHRASES("no_scatter" if reason is Cause.NO_SCATTER else "includes_margin")
    if isinstance(reason, WithinNoise):
        if item.shares is not None:
            return PHRASES("within_noise_share", points=100 * reason.noise)
        return PHRASES("within_noise", noise=math.exp(reason.noise))
    if isinstance(reason, OtherPlacement):
        return PHRASES(
            "other_placement",
            place=words.PLACES[reason.nearness],
            head=item.head,
            head_share=reason.shares[1],
            base=item.base,
            base_share=reason.shares[0],
        )
    if isinstance(reason, Completions):
        return _completions(item, reason)
    return PHRASES("reason", reason=reason)


def _completions(item: Item, counts: Completions) -> Phrase:
    first = Phrase()
    if incomplete := counts.first_incomplete:
        outcome = incomplete.outcome.replace("_", " ")
        first = PHRASES("first_incomplete", outcome=outcome)
        if incomplete.detail:
            first = PHRASES("first_incomplete_detail", outcome=outcome, detail=incomplete.detail)
    return PHRASES(
        "completions",
        head_completed=counts.completed[1],
        head_runs=counts.runs[1],
        base=item.base,
        base_completed=counts.completed[0],
        base_runs=counts.runs[0],
        first_incomplete=first,
    )


def detectable(judged: Judged) -> Phrase:
    """Return a sentence on the detectable changes by response, or "" if nothing was compared."""
    changes = [_change(response, shares) for response, shares in judged.detectable().items()]
    if not changes or judged.nothing_usable:
        return Phrase()
    sample = PHRASES("blocks" if judged.method is Method.PAIRED_BLOCKS else "runs")
    return PHRASES("detectable", changes=changes, margin=judged.margin, sample=sample)


def _change(response: Response, shares: Sequence[float | None]) -> Phrase:
    known = sorted(share for share in shares if share is not None)
    if not known:
        return PHRASES("no_change", response=response.title)
    unit = "percentage points" if response.share else "%"
    return PHRASES(
        "decrease" if response.more_is_better else "increase",
        response=response.title,
        change=100 * known[0],
        unit=unit,
        range=_range(known, len(shares), unit),
    )


def _range(known: Sequence[float], treatments: int, unit: str) -> Phrase:
    """Return the detectable change of the least precise treatment, or "" if all are similar."""
    all_known = len(known) == treatments
    if treatments == 1 or (all_known and known[-1] <= 1.05 * known[0]):
        return Phrase()
    most = PHRASES("at_least", change=100 * known[-1], unit=unit)
    return PHRASES("range", least_precise=most if all_known else PHRASES("none"))


def method(judged: Judged) -> Phrase:
    """Return the method of the intervals in the comparison."""
    if judged.method is Method.PAIRED_BLOCKS:
        return PHRASES("paired_blocks", different_p=stats.paired.DIFFERENT_P)
    return PHRASES("two_occasions")
