"""Sentences on the bounds, values and verdicts of the study's limits."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire import stats
from wattwire.analysis.limits import BROKEN, Checked
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "limit",
    {
        "limit": "{response} {bounds}{treatment}",
        "at_most": "at most {bound:number}{unit}",
        "at_least": "at least {bound:number}{unit}",
        "interval": (
            "{estimate:number} ({low:number} to {high:number} at {level:confidence}, "
            "{runs:plural run})"
        ),
        "same_in_all": "{value:number} in each of {runs:plural run}",
        "no_value": "{reason}",
        "never_sent": "{share:percent} of the due messages were never sent",
        "base": "{base} {value}, {verdict} there",
        "sentence": "{verdict}: {limit}: {value}.",
        # The result for all limits.
        "broken": "{broken} of {limits:plural limit} broken: {named}{rest}.",
        "broken_limit": "{limit}: {value}",
        "more": "; and {more} more",
        "undecided": (
            "No limit is shown to be broken, but {unclear} of {limits:plural limit} cannot be "
            "decided."
        ),
        "all_hold": "All {limits:plural limit} of the study hold.",
        "one_holds": "The study's limit holds.",
    },
)

NAMED_MAX = 3


def limit(check: Checked) -> Phrase:
    """Return a phrase with the response, the bounds and the treatment of a limit."""
    unit = f" {check.response.unit}" if check.response.unit else ""
    bounds = []
    if check.limit.max is not None:
        bounds.append(PHRASES("at_most", bound=check.limit.max, unit=unit))
    if check.limit.min is not None:
        bounds.append(PHRASES("at_least", bound=check.limit.min, unit=unit))
    return PHRASES(
        "limit",
        response=check.response.title,
        bounds=joined(bounds, " and "),
        treatment=f", {check.treatment}" if check.treatment else "",
    )


def value(check: Checked) -> Phrase:
    """Return the value with its interval and runs, followed by the value of the base variant.

    A share of lost messages says nothing about messages that were never sent, so their share
    follows it.
    """
    unsent = check.unsent_share
    never_sent = PHRASES("never_sent", share=unsent) if unsent else Phrase()
    return joined([_own_value(check), never_sent, base_value(check)], "; ")


def base_value(check: Checked) -> Phrase:
    """Return the name, the value and the verdict of the base variant.

    The result is "" if the limit has no base variant.
    """
    base = check.base
    if base is None:
        return Phrase()
    return PHRASES("base", base=base.treatment, value=_own_value(base), verdict=base.verdict)


def _own_value(check: Checked) -> Phrase:
    estimate = check.estimate
    if isinstance(estimate, stats.Interval):
        return PHRASES(
            "interval",
            estimate=estimate.estimate,
            low=estimate.low,
            high=estimate.high,
            level=estimate.level,
            runs=check.runs,
        )
    if isinstance(estimate, float):
        return PHRASES("same_in_all", value=estimate, runs=check.runs)
    return PHRASES("no_value", reason=estimate)


def sentence(check: Checked) -> Phrase:
    """Return a line with the verdict, the limit and the value."""
    return PHRASES("sentence", verdict=check.verdict, limit=limit(check), value=value(check))


def in_short(checked: Sequence[Checked]) -> Phrase:
    """Return a sentence with the number and the names of the broken limits."""
    broken = [check for check in checked if check.verdict == BROKEN]
    unclear = sum(not check.sure for check in checked)
    if broken:
        named = [
            PHRASES("broken_limit", limit=limit(check), value=value(check))
            for check in broken[:NAMED_MAX]
        ]
        more = len(broken) - NAMED_MAX
        return PHRASES(
            "broken",
            broken=len(broken),
            limits=len(checked),
            named=joined(named, "; "),
            rest=PHRASES("more", more=more) if more > 0 else "",
        )
    if unclear:
        return PHRASES("undecided", limits=len(checked), unclear=unclear)
    if len(checked) > 1:
        return PHRASES("all_hold", limits=len(checked))
    return PHRASES("one_holds")
