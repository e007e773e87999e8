"""Whether a campaign may stop, judged from what it holds, and how its page says that it did.

A study with `plan.stop_width` is looked at after every whole block: by the same numbers, taken the
same way, as stand on its page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wattwire.report import words
from wattwire.report.answers import baseline_of, block_table
from wattwire.report.evidence import CampaignReader, Evidence, gather, levels_run, same_level
from wattwire.report.responses import Response, resolve
from wattwire.stats import sequential


def judge(reader: CampaignReader) -> dict[str, Any] | None:
    """One look at a campaign whose summary is up to date; None where its study never stops."""
    evidence = gather(reader)
    response = primary_response(evidence)
    plan = evidence.study.get("plan", {})
    target = float(plan.get("stop_width", 0.0))
    if not target or response is None:
        return None
    found = look(evidence, response, target, int(plan.get("blocks_min", sequential.BLOCKS_MIN)))
    return {
        "response": response.column,
        "blocks": found.block_count,
        # JSON has no infinity: a width that cannot be told yet is null.
        "width": found.width if np.isfinite(found.width) else None,
        "target": target,
        "reached": found.reached,
    }


def primary_response(evidence: Evidence) -> Response | None:
    """The first response, of which a ratio can be taken, of the first question on the primary."""
    for question in evidence.study.get("question", []):
        if evidence.primary in question.get("factors", []):
            for name in question.get("responses", []):
                response = resolve(name)
                if not response.share:
                    return response
    return None


def look(evidence: Evidence, response: Response, target: float, least: int) -> sequential.Look:
    """The width of the primary factor's contrasts with its baseline, over whole blocks."""
    baseline = baseline_of(evidence, evidence.primary)
    contrasts = []
    for level in levels_run(evidence, evidence.primary):
        if not same_level(level, baseline):
            sides = block_table(evidence, response, evidence.primary, [level, baseline])
            finite = sides[np.isfinite(sides).all(axis=1)]
            contrasts.append(finite[:, 0] - finite[:, 1])
    return sequential.look(contrasts, target, least)


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
    return f"{told}. {because}"
