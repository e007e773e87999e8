"""Apply the stopping rule to the runs of a campaign, and return its state for the report.

A study with `plan.stop_width` is examined after every complete block, with the numbers that its
report would use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.answering.baselines import planned_baseline
from wattwire.analysis.answering.block_models import block_table
from wattwire.analysis.dataset import CampaignReader, Evidence, gather, levels_run, same_level
from wattwire.analysis.responses import Response, resolve
from wattwire.model.derived import FloatArray
from wattwire.stats import sequential

REACHED, NOT_REACHED, RUNNING, UNCHECKED = "reached", "not reached", "running", "unchecked"


@dataclass(frozen=True)
class Finished:
    """A level of the primary factor whose contrast was precise enough after `after` blocks."""

    level: str
    after: int


@dataclass(frozen=True)
class Stopping:
    """The stopping rule of a campaign. `target` is a width (share); 0 without a rule.

    `look` is the journal's entry on the last look, which analysis.json contains; it is None before
    the first look. `response_title` is the response whose widest primary interval decides.
    """

    target: float = 0.0
    blocks_min: int = 0
    blocks_max: int = 0
    look: Mapping[str, Any] | None = None
    response_title: str = ""
    computed_at: float = sequential.INNER_CONFIDENCE
    reported_as: float = sequential.CONFIDENCE

    @property
    def state(self) -> str:
        """REACHED, NOT_REACHED after the last block, RUNNING, or UNCHECKED before any look."""
        if not self.look:
            return UNCHECKED
        if self.look["reached"]:
            return REACHED
        return NOT_REACHED if self.after >= self.blocks_max else RUNNING

    @property
    def after(self) -> int:
        """The number of blocks before the last look."""
        return int(self.look["after"]) if self.look else 0

    @property
    def width(self) -> float | None:
        """The width (share) of the widest primary interval; None if it is unknown."""
        return self.look["width"] if self.look else None

    @property
    def early(self) -> tuple[Finished, ...]:
        """The levels that were finished before the last look, which later blocks omit."""
        finished = self.look["finished"] if self.look else {}
        levels = (Finished(level, after) for level, after in finished.items())
        return tuple(level for level in levels if level.after < self.after)


def stopping(evidence: Evidence) -> Stopping:
    """Return the stopping rule of a campaign with its last look."""
    plan, look = evidence.study.plan, evidence.stopping
    if not plan.stop_width:
        return Stopping(look=look)
    title = resolve(look["response"]).title if look else ""
    return Stopping(plan.stop_width, plan.blocks_min, plan.blocks, look, title)


def stored(result: Stopping) -> dict[str, Any]:
    """Return the last look as JSON values, or null."""
    return {"stopping": result.look}


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
