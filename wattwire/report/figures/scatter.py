"""The points of a scatter: a run each, two of its responses against one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence, levels_of
from wattwire.model.derived import FloatArray
from wattwire.report import figures


def points_of(
    evidence: Evidence,
    frame: pl.DataFrame,
    across: FloatArray,
    up: FloatArray,
    tone: str,
    panel: str,
) -> list[dict[str, Any]]:
    """A point a run of `frame` that has both values, shapes (runs,), above zero and bounded.

    Scales are log, so that others have no place. `tone` is the factor that is told by colour.
    """
    levels = {name: levels_of(frame, name) for name in evidence.varied}
    tones = levels_of(frame, tone)
    runs = frame["run"].to_list()
    with np.errstate(invalid="ignore"):
        drawable = np.isfinite(across) & (across > 0) & np.isfinite(up) & (up > 0)
    return [
        {
            "x": figures.rounded(float(across[at])),
            "y": figures.rounded(float(up[at])),
            "run": runs[at],
            "treatment": evidence.treatment_title({n: had[at] for n, had in levels.items()}),
            "colour": evidence.title(tone, tones[at]),
            "panel": panel,
        }
        for at in np.flatnonzero(drawable)
    ]
