"""Whether a campaign may stop, judged from what it holds.

A study with `plan.stop_width` is looked at after every whole block: by the same numbers, taken the
same way, as stand on its page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wattwire.analysis.contrasts import block_table, planned_baseline
from wattwire.analysis.dataset import CampaignReader, Evidence, gather, levels_run, same_level
from wattwire.analysis.responses import Response, resolve
from wattwire.model.derived import FloatArray
from wattwire.stats import sequential


def judge(reader: CampaignReader) -> dict[str, Any] | None:
    """One look at a campaign whose summary is up to date; None where its study never stops.

    `finished` names the levels of the primary factor whose contrast is known well enough, this
    time or before; `reached` says that all are.
    """
    evidence = gather(reader)
    response = primary_response(evidence)
    plan = evidence.study.get("plan", {})
    target = float(plan.get("stop_width", 0.0))
    if not target or response is None:
        return None
    least = int(plan.get("blocks_min", sequential.BLOCKS_MIN))
    finished = sorted((evidence.stopping or {}).get("finished", {}))
    found = {
        level: sequential.look(logs, target, least)
        for level, logs in contrasts(evidence, response).items()
        if level not in finished
    }
    width = max((one.width for one in found.values()), default=0.0)
    finished += sorted(level for level, one in found.items() if one.reached)
    return {
        "response": response.column,
        # JSON has no infinity: a width that cannot be told yet is null.
        "width": width if np.isfinite(width) else None,
        "target": target,
        "finished": finished,
        "reached": bool(found) and all(one.reached for one in found.values()),
    }


def primary_of(evidence: Evidence) -> str:
    """The factor whose contrasts say when to stop: the study's, whatever was run of it."""
    return str(evidence.study.get("plan", {}).get("primary", ""))


def primary_response(evidence: Evidence) -> Response | None:
    """The first response, of which a ratio can be taken, of the first question on the primary."""
    for question in evidence.study.get("question", []):
        if primary_of(evidence) in question.get("factors", []):
            for name in question.get("responses", []):
                response = resolve(name)
                if not response.share:
                    return response
    return None


def contrasts(evidence: Evidence, response: Response) -> dict[str, FloatArray]:
    """Log ratios of each level of the primary factor to its baseline, one a whole block."""
    primary = primary_of(evidence)
    baseline = planned_baseline(evidence, primary)
    found = {}
    for level in levels_run(evidence, primary):
        if not same_level(level, baseline):
            sides = block_table(evidence, response, primary, [level, baseline])
            finite = sides[np.isfinite(sides).all(axis=1)]
            found[str(level)] = finite[:, 0] - finite[:, 1]
    return found
