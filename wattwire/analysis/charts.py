"""Compute the points of charts, and divide them by colour and into panels.

The result of a topic has its charts as data; `report/figures/` draws them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence, all_levels, levels_of, levels_run
from wattwire.model.derived import FloatArray

Point = dict[str, Any]
ALL_RUNS = "all runs"
"""Name of the only group of a study without factors, such as that of `exec`."""
BOX_RUNS_MIN = 5
"""Minimum number of runs for a box. Fewer runs give unreliable quartiles and are drawn as dots."""
VIOLIN_RUNS_MIN = 20
"""Minimum number of runs for a violin. With fewer runs, the density mainly shows its bandwidth."""
LOG, LINEAR = "log", "linear"
ROWS_MAX = 6
PANELS_PER_ROW = 3


@dataclass(frozen=True)
class Chart:
    """The points of a chart, and the names of its groups in their order.

    The function that draws the chart states the fields of a point. `colours` are the names in the
    legend, and `colour_title` is its title. A row of panels has at most `per_row` panels. `across`
    are the levels on the x axis if it has no numbers; other axes have the scale LOG or LINEAR.
    """

    points: Sequence[Point] = ()
    colours: Sequence[str] = ()
    colour_title: str = ""
    rows: Sequence[str] = ()
    panels: Sequence[str] = ()
    per_row: int = 1
    across: Sequence[str] = ()
    x_scale: str = LOG
    y_scale: str = LOG


def rounded(value: float, digits: int = 4) -> float:
    """Return `value` rounded to `digits` significant digits, which reduces the size of the page."""
    return float(f"{value:.{digits}g}")


def spread(count: int, wanted: int) -> list[int]:
    """Return `wanted` evenly spaced indices from 0 to `count` - 1, including both ends."""
    if wanted >= count:
        return list(range(count))
    return np.linspace(0, count - 1, wanted).round().astype(int).tolist()


def points_of(
    evidence: Evidence,
    frame: pl.DataFrame,
    across: FloatArray,
    up: FloatArray,
    tone: str,
    panel: str,
) -> list[Point]:
    """Return one point per run of `frame` whose two values are positive and finite.

    Log scales cannot show other values. `across` and `up` have shape (runs,). `tone` is the factor
    on colour.
    """
    levels = {name: levels_of(frame, name) for name in evidence.varied}
    tones = levels_of(frame, tone)
    runs = frame["run"].to_list()
    with np.errstate(invalid="ignore"):
        drawable = np.isfinite(across) & (across > 0) & np.isfinite(up) & (up > 0)
    return [
        {
            "x": rounded(float(across[row])),
            "y": rounded(float(up[row])),
            "run": runs[row],
            "treatment": evidence.treatment_title(
                {n: run_levels[row] for n, run_levels in levels.items()}
            ),
            "colour": evidence.title(tone, tones[row]),
            "panel": panel,
        }
        for row in np.flatnonzero(drawable)
    ]


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

    A study without factors has one group, as in `tone_of`.
    """
    if not factor:
        return [ALL_RUNS]
    return [evidence.title(factor, level) for level in levels_run(evidence, factor)]


def tone_of(evidence: Evidence, treatment: Mapping[str, Any]) -> str:
    """Return the title of a treatment's level of the primary factor, which colours its points."""
    primary = evidence.primary
    return evidence.title(primary, treatment.get(primary)) if primary else ALL_RUNS


def treatment_of(evidence: Evidence, run: str) -> dict[str, Any]:
    """Return all levels of a run, including fixed levels."""
    return all_levels(evidence.runs[run])
