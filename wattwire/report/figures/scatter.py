"""Compute the points of a scatter plot from two responses of each run."""

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
            "x": figures.rounded(float(across[row])),
            "y": figures.rounded(float(up[row])),
            "run": runs[row],
            "treatment": evidence.treatment_title(
                {n: run_levels[row] for n, run_levels in levels.items()}
            ),
            "colour": evidence.title(tone, tones[row]),
            "panel": panel,
        }
        for row in np.flatnonzero(drawable)
    ]
