"""State the confidence level of intervals, before the correction for their family."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.stats import sequential

CONFIDENCE = 0.95
ENOUGH_FOR_A_HEADLINE = 2
"""With fewer degrees of freedom, as of two blocks, an interval is in tables and in no headline.
With one it extends 12.7 standard errors, and the standard error rests on a single difference.
"""


def has_few_degrees(degrees: float | None) -> bool:
    """Return whether an error has too few degrees of freedom for a headline.

    None means that the interval has no such error, as an interval by ranks.
    """
    return degrees is not None and 0 < degrees < ENOUGH_FOR_A_HEADLINE


def interval_confidence(*campaigns: Evidence) -> float:
    """Return the level at which every interval of these campaigns is computed, 0.95 or above.

    Repeated looks at the width reduce the coverage of all intervals, because few runs with a small
    scatter end a campaign. If a campaign stops by width, its intervals are therefore computed at a
    higher level and reported as CONFIDENCE.
    """
    has_looks = any(evidence.study.plan.stop_width for evidence in campaigns)
    return sequential.INNER_CONFIDENCE if has_looks else CONFIDENCE
