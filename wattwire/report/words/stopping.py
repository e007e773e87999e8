"""The sentence on how a campaign ended by its own stopping rule."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.stats import sequential


def sentence(evidence: Evidence) -> str | None:
    """Return how the campaign ended by its stopping rule; None where its study has none."""
    plan = evidence.study.get("plan", {})
    if not plan.get("stop_width"):
        return None
    blocks_max, blocks_min = (
        int(plan.get("blocks", 5)),
        int(plan.get("blocks_min", sequential.BLOCKS_MIN)),
    )
    target = words.percent(float(plan["stop_width"]))
    price = (
        f"Its answers are computed at {words.confidence(sequential.INNER_CONFIDENCE)} and called "
        f"{words.confidence(sequential.CONFIDENCE)}: the width was looked at after every block "
        f"from number {blocks_min} on, and that is its price."
    )
    look = evidence.stopping
    if not look:
        return f"This campaign stops by width (± {target}); it has not been looked at yet. {price}"
    width = "cannot be told" if look["width"] is None else f"is ± {words.percent(look['width'])}"
    title = resolve(look["response"]).title
    widest = f"the widest primary interval in {title} {width}, ± {target} was the aim"
    if look["reached"]:
        outcome = (
            f"Stopped by width after {look['after']} of {words.plural(blocks_max, 'block')}: "
            f"{widest}"
        )
    elif look["after"] >= blocks_max:
        outcome = (
            f"Width not reached in {words.plural(blocks_max, 'block')}, the most allowed: {widest}"
        )
    else:
        outcome = f"After {look['after']} of {words.plural(blocks_max, 'block')} {widest}"
    early = {level: after for level, after in look["finished"].items() if after < look["after"]}
    if early:
        listed = words.listed([f"{level} after {after}" for level, after in early.items()])
        outcome += f"; left out of later blocks, for their ratios were known by then: {listed}"
    return f"{outcome}. {price}"
