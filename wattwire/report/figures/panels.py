"""Divide a figure into panels by pattern, by a factor, or by the levels of all other factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.analysis.dataset import Evidence, all_levels, levels_run
from wattwire.analysis.metrics_by_role import BOTH
from wattwire.analysis.response_lines import Group
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "panels",
    {
        "all_runs": "all runs",
        "too_many": (
            "The roles and the levels of the other factors have {panels:count} combinations; a "
            "figure shows at most {most:count} as panels."
        ),
    },
)

ROWS_MAX = 6
PANELS_PER_ROW = 3
REQUESTED_PER_ROW, REQUESTED_MAX = 2, 12
"""Panels of a requested figure: the number per row, and the maximum number."""


def facet_factor(evidence: Evidence) -> str | None:
    """Return the factor that divides a figure into rows.

    This is the factor with the most levels, if they are at most ROWS_MAX.
    """
    factors = [
        name
        for name in evidence.varied
        if name not in ("pattern", evidence.primary)
        and 1 < len(levels_run(evidence, name)) <= ROWS_MAX
    ]
    return max(factors, key=lambda name: len(levels_run(evidence, name))) if factors else None


def panel_of(evidence: Evidence, treatment: Mapping[str, Any], across: str | None) -> str:
    """Return the title of a treatment's panel, from its pattern and its level of `across`."""
    names = [str(treatment.get("pattern", ""))] if len(titles_of(evidence, "pattern")) > 1 else []
    names += [evidence.title(across, treatment.get(across))] if across else []
    return ", ".join(word for word in names if word)


def panels(evidence: Evidence, across: str | None, present: Sequence[str]) -> list[str]:
    """Return the nonempty panels, sorted by level of `across`, then by pattern."""
    planned = [
        panel_of(evidence, {"pattern": pattern, across or "": level}, across)
        for level in (levels_run(evidence, across) if across else [None])
        for pattern in levels_run(evidence, "pattern") or [""]
    ]
    return [panel for panel in dict.fromkeys(planned) if panel in set(present)]


def panels_per_row(evidence: Evidence) -> int:
    """Return the number of panels per row.

    This is the number of patterns, or PANELS_PER_ROW for a single pattern.
    """
    patterns = len(titles_of(evidence, "pattern"))
    return patterns if patterns > 1 else PANELS_PER_ROW


def titles_of(evidence: Evidence, factor: str) -> list[str]:
    """Return the titles of the levels of a factor that have runs, in order.

    A study without factors, such as that of `exec`, has one group, as in `tone_of`.
    """
    if not factor:
        return [PHRASES("all_runs")]
    return [evidence.title(factor, level) for level in levels_run(evidence, factor)]


def tone_of(evidence: Evidence, treatment: Mapping[str, Any]) -> str:
    """Return the title of a treatment's level of the primary factor, which colours its points."""
    primary = evidence.primary
    return evidence.title(primary, treatment.get(primary)) if primary else PHRASES("all_runs")


def treatment_of(evidence: Evidence, run: str) -> dict[str, Any]:
    """Return all levels of a run, including fixed levels."""
    return all_levels(evidence.runs[run])


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
