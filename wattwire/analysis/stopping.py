"""Apply the stopping rule to the runs of a campaign.

A study with `plan.stop_width` is examined after every complete block, with the numbers that its
report would use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wattwire.analysis.answering.baselines import planned_baseline
from wattwire.analysis.answering.block_models import block_table
from wattwire.analysis.dataset import CampaignReader, Evidence, gather, levels_run, same_level
from wattwire.analysis.responses import Response, resolve
from wattwire.model.derived import FloatArray
from wattwire.stats import sequential


def judge(reader: CampaignReader) -> dict[str, Any] | None:
    """Return the result of a look at the campaign; None if it has no stopping rule.

    The summary must be up to date. `finished` lists the levels of the primary factor whose contrast
    is precise enough at this or an earlier look. `reached` is true if all levels are finished.
    """
    evidence = gather(reader)
    response = primary_response(evidence)
    target, blocks_min = evidence.study.plan.stop_width, evidence.study.plan.blocks_min
    if not target or response is None:
        return None
    finished = sorted((evidence.stopping or {}).get("finished", {}))
    looks = {
        level: sequential.look(logs, target, blocks_min)
        for level, logs in contrasts(evidence, response).items()
        if level not in finished
    }
    width = max((look.width for look in looks.values()), default=0.0)
    finished += sorted(level for level, look in looks.items() if look.reached)
    return {
        "response": response.column,
        # JSON has no infinity, so an unknown width is null.
        "width": width if np.isfinite(width) else None,
        "target": target,
        "finished": finished,
        "reached": bool(looks) and all(look.reached for look in looks.values()),
    }


def primary_of(evidence: Evidence) -> str:
    """Return the factor whose contrasts decide when to stop.

    A part of a study uses the factor of the whole study.
    """
    return evidence.study.plan.primary


def primary_response(evidence: Evidence) -> Response | None:
    """Return the first response with a ratio in the first question about the primary factor."""
    for question in evidence.study.questions:
        if primary_of(evidence) in question.factors:
            for name in question.responses:
                response = resolve(name)
                if not response.share:
                    return response
    return None


def contrasts(evidence: Evidence, response: Response) -> dict[str, FloatArray]:
    """Return the log ratio of each primary level to the baseline, shape (complete blocks,)."""
    primary = primary_of(evidence)
    baseline = planned_baseline(evidence, primary)
    logs_by_level = {}
    for level in levels_run(evidence, primary):
        if not same_level(level, baseline):
            log_means = block_table(evidence, response, primary, [level, baseline])
            finite = log_means[np.isfinite(log_means).all(axis=1)]
            logs_by_level[str(level)] = finite[:, 0] - finite[:, 1]
    return logs_by_level
