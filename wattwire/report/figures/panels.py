"""How a figure is parted into panels: by pattern, and by the factor with most levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.analysis.dataset import Evidence, all_levels, levels_run

ROWS_MAX = 6
PANELS_PER_ROW = 3


def facet_factor(evidence: Evidence) -> str | None:
    """The factor that parts a figure into rows: the one with most levels, up to ROWS_MAX."""
    others = [
        name
        for name in evidence.varied
        if name not in ("pattern", evidence.primary)
        and 1 < len(levels_run(evidence, name)) <= ROWS_MAX
    ]
    return max(others, key=lambda name: len(levels_run(evidence, name))) if others else None


def panel_of(evidence: Evidence, treatment: Mapping[str, Any], across: str | None) -> str:
    """The panel of a figure that a treatment belongs to: its pattern and its level of `across`."""
    told = [str(treatment.get("pattern", ""))] if len(titles_of(evidence, "pattern")) > 1 else []
    told += [evidence.title(across, treatment.get(across))] if across else []
    return ", ".join(word for word in told if word)


def panels(evidence: Evidence, across: str | None, present: Sequence[str]) -> list[str]:
    """The panels that hold anything, ordered by level of `across`, then by pattern."""
    wanted = [
        panel_of(evidence, {"pattern": pattern, across or "": level}, across)
        for level in (levels_run(evidence, across) if across else [None])
        for pattern in levels_run(evidence, "pattern") or [""]
    ]
    return [panel for panel in dict.fromkeys(wanted) if panel in set(present)]


def panels_per_row(evidence: Evidence) -> int:
    """As many panels beside each other as there are patterns, or PANELS_PER_ROW for one."""
    patterns = len(titles_of(evidence, "pattern"))
    return patterns if patterns > 1 else PANELS_PER_ROW


def titles_of(evidence: Evidence, factor: str) -> list[str]:
    """The levels of a factor that were run, as readers see them, in order."""
    return [evidence.title(factor, level) for level in levels_run(evidence, factor)]


def treatment_of(evidence: Evidence, run: str) -> dict[str, Any]:
    """Every level of a run, fixed ones included."""
    return all_levels(evidence.runs[run])
