"""How a page says that its campaign ended by its own rule."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.stats import sequential


def sentence(evidence: Evidence) -> str | None:
    """How the campaign ended by its own rule; None where its study has none."""
    plan = evidence.study.get("plan", {})
    if not plan.get("stop_width"):
        return None
    most, least = int(plan.get("blocks", 5)), int(plan.get("blocks_min", sequential.BLOCKS_MIN))
    target = words.percent(float(plan["stop_width"]))
    because = (
        f"Its answers are computed at {words.confidence(sequential.INNER_CONFIDENCE)} and called "
        f"{words.confidence(sequential.CONFIDENCE)}: the width was looked at after every block "
        f"from number {least} on, and that is its price."
    )
    found = evidence.stopping
    if not found:
        return (
            f"This campaign stops by width (± {target}); it has not been looked at yet. {because}"
        )
    width = "cannot be told" if found["width"] is None else f"is ± {words.percent(found['width'])}"
    title = resolve(found["response"]).title
    reached = f"the widest primary interval in {title} {width}, ± {target} was the aim"
    if found["reached"]:
        told = (
            f"Stopped by width after {found['after']} of {words.plural(most, 'block')}: {reached}"
        )
    elif found["after"] >= most:
        told = f"Width not reached in {words.plural(most, 'block')}, the most allowed: {reached}"
    else:
        told = f"After {found['after']} of {words.plural(most, 'block')} {reached}"
    early = {level: after for level, after in found["finished"].items() if after < found["after"]}
    if early:
        listed = words.listed([f"{level} after {after}" for level, after in early.items()])
        told += f"; left out of later blocks, for their ratios were known by then: {listed}"
    return f"{told}. {because}"
