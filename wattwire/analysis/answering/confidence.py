"""State the confidence level of intervals, before the correction for their family."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.stats import sequential

CONFIDENCE = 0.95


def interval_confidence(*campaigns: Evidence) -> float:
    """Return the level at which every interval of these campaigns is computed, 0.95 or above.

    Repeated looks at the width reduce the coverage of all intervals, because few runs with a small
    scatter end a campaign. If a campaign stops by width, its intervals are therefore computed at a
    higher level and reported as CONFIDENCE.
    """
    has_looks = any(evidence.study.plan.stop_width for evidence in campaigns)
    return sequential.INNER_CONFIDENCE if has_looks else CONFIDENCE
