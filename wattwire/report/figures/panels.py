"""Divide a requested figure into panels by role and by the levels of all other factors."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.analysis.charts import titles_of
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.metrics_by_role import BOTH
from wattwire.analysis.response_lines import Group
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "panels",
    {
        "too_many": (
            "The roles and the levels of the other factors have {panels:count} combinations; a "
            "figure shows at most {most:count} as panels."
        ),
    },
)

REQUESTED_PER_ROW, REQUESTED_MAX = 2, 12
"""Panels of a requested figure: the number per row, and the maximum number."""


def group_panels(groups: Sequence[Group]) -> dict[Group, str] | Phrase:
    """Return the title of each group's panel, or the reason if there are too many panels."""
    panels_by_group = {
        group: ", ".join(
            filter(None, (group.role.replace("_", " ") if group.role != BOTH else "", group.others))
        )
        for group in groups
    }
    count = len(set(panels_by_group.values()))
    if count > REQUESTED_MAX:
        return PHRASES("too_many", panels=count, most=REQUESTED_MAX)
    return panels_by_group


def titles_present(evidence: Evidence, factor: str, present: Sequence[str]) -> list[str]:
    """Return the titles of a factor's levels that are in `present`, in planned order."""
    planned = [title for title in titles_of(evidence, factor) if title in set(present)]
    return list(dict.fromkeys([*planned, *present]))
