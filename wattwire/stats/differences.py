"""Estimate differences of means within blocks, on the untransformed scale.

What it computes: the difference between two levels of one factor, in the unit of the response.
How: the contrast of `blocked.ratio` on an untransformed fit: arithmetic means without block
effects, the error of `contrast_errors.py`, and a t interval.
What it misses: one outlier shifts a mean.
`ranks.paired_shift_by_ranks` is the robust counterpart.
Reference: Montgomery, Design and Analysis of Experiments, ch. 4; Searle, Linear Models, ch. 5.
"""

from __future__ import annotations

from wattwire.stats.blocked import (
    Contrast,
    Fit,
    Level,
    Unanswered,
    contrast_error,
    contrast_interval,
    contrast_of,
    runs_and_blocks,
)
from wattwire.stats.results import NotComputable


class Difference(Contrast):
    """Typical or mean difference `level` − `baseline`, with an interval, in the data's unit."""


def difference(
    fit: Fit,
    factor: str,
    level: Level,
    baseline: Level,
    confidence: float = 0.95,
    within: tuple[str, Level] | None = None,
    names: tuple[str, str] | None = None,
) -> Difference | Unanswered:
    """Return `level` − `baseline` with an interval at `confidence`.

    The other parameters are the same as in `blocked.ratio`. Raise ValueError for a fit on the log
    scale.
    """
    if fit.scale != "plain":
        raise ValueError(
            f"fit: found the {fit.scale} scale; allowed: the plain scale, for differences"
        )
    contrast = contrast_of(fit, factor, (level, baseline), within, names)
    if not isinstance(contrast, tuple):
        return contrast
    weights, strata = contrast
    if not contrast_error(fit, weights)[0] > 0:
        centre = float(weights @ fit.coefficients)
        upper, lower = names or (level, baseline)
        return NotComputable(
            f"{upper} minus {lower} is {centre:.3g} without scatter between runs, so its error "
            "is unknown"
        )
    interval = contrast_interval(fit, weights, confidence)
    return Difference(
        factor, level, baseline, interval, strata, *runs_and_blocks(fit, weights), fit.kind,
        fit.is_averaged,
    )  # fmt: skip
