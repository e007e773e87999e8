"""The sentence on how a campaign ended by its own stopping rule."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.stats import sequential


def sentence(evidence: Evidence) -> str | None:
    """Return how the campaign ended by its stopping rule; None where its study has none."""
    plan = evidence.study.plan
    if not plan.stop_width:
        return None
    blocks_max, blocks_min = plan.blocks, plan.blocks_min
    target = words.percent(plan.stop_width)
    price = (
        f"Its answers are computed at {words.confidence(sequential.INNER_CONFIDENCE)} and reported "
        f"as {words.confidence(sequential.CONFIDENCE)}, because the width was checked after every "
        f"block from block {blocks_min} on."
    )
    look = evidence.stopping
    if not look:
        return (
            f"This campaign stops by width (± {target}); the width has not been checked yet. "
            f"{price}"
        )
    width = "is unknown" if look["width"] is None else f"is ± {words.percent(look['width'])}"
    title = resolve(look["response"]).title
    widest = f"the widest primary interval in {title} {width} (target: ± {target})"
    if look["reached"]:
        outcome = (
            f"Stopped by width after {look['after']} of {words.plural(blocks_max, 'block')}: "
            f"{widest}"
        )
    elif look["after"] >= blocks_max:
        outcome = (
            f"Target width not reached in {words.plural(blocks_max, 'block')}, the maximum: "
            f"{widest}"
        )
    else:
        outcome = f"After {look['after']} of {words.plural(blocks_max, 'block')} {widest}"
    early = {level: after for level, after in look["finished"].items() if after < look["after"]}
    if early:
        listed = words.listed([f"{level} after {after}" for level, after in early.items()])
        outcome += (
            f"; excluded from later blocks because their ratios were precise enough: {listed}"
        )
    return f"{outcome}. {price}"
