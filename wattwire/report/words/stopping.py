"""Explain how the stopping rule ended a campaign."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import resolve
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats import sequential

PHRASES = Phrases(
    "stopping",
    {
        "reached": (
            "Measurement stopped after {after} of {blocks:plural block}, because {widest}"
            "{finished_early}."
        ),
        "not_reached": (
            "Target width not reached after {blocks:plural block} (the maximum): {widest}"
            "{finished_early}."
        ),
        "so_far": ("After {after} of {blocks:plural block}, {widest}{finished_early}."),
        "widest": (
            "the widest primary interval in {response} is ± {width:percent} (target: ± "
            "{target:percent})"
        ),
        "widest_unknown": (
            "the widest primary interval in {response} is unknown (target: ± {target:percent})"
        ),
        "finished_early": (
            ". Later blocks omit levels with sufficiently precise ratios: {levels:listed}"
        ),
        "finished_level": "{level} after {after}",
        "unchecked": (
            "This campaign stops when its intervals reach a target width (± {target:percent}"
            "). The width has not been checked yet."
        ),
        "price": (
            "Answers, rankings, limits, comparisons and control runs have intervals that are "
            "computed at {computed_at:confidence} and reported as {reported_as:confidence}, "
            "because the width was checked after every block, starting with block {first_checked}."
        ),
    },
)


def sentence(evidence: Evidence) -> Phrase | None:
    """Return a sentence on the result of the stopping rule, or None if there is no rule."""
    plan = evidence.study.plan
    if not plan.stop_width:
        return None
    blocks_max, blocks_min = plan.blocks, plan.blocks_min
    target = plan.stop_width
    price = PHRASES(
        "price",
        computed_at=sequential.INNER_CONFIDENCE,
        reported_as=sequential.CONFIDENCE,
        first_checked=blocks_min,
    )
    look = evidence.stopping
    if not look:
        return joined([PHRASES("unchecked", target=target), price])
    title = resolve(look["response"]).title
    widest = (
        PHRASES("widest_unknown", response=title, target=target)
        if look["width"] is None
        else PHRASES("widest", response=title, width=look["width"], target=target)
    )
    early = [
        PHRASES("finished_level", level=level, after=after)
        for level, after in look["finished"].items()
        if after < look["after"]
    ]
    finished_early = PHRASES("finished_early", levels=early) if early else ""
    if look["after"] >= blocks_max and not look["reached"]:
        outcome = PHRASES(
            "not_reached", blocks=blocks_max, widest=widest, finished_early=finished_early
        )
    else:
        outcome = PHRASES(
            "reached" if look["reached"] else "so_far",
            after=look["after"],
            blocks=blocks_max,
            widest=widest,
            finished_early=finished_early,
        )
    return joined([outcome, price])
