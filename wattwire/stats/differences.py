"""Treatments contrasted inside blocks where no logarithm can be taken: differences of means.

What: the difference between two levels of one factor, in the response's own unit.
How: the contrast of `blocked.ratio` on a plain fit: arithmetic means, blocks taken out, the error
pooled over treatments, limits by t.
What it misses: where runs scatter in proportion to their size, which ratios take care of, levels
that are small borrow the error of large ones, and the other way round; one run far out moves a
mean. `ranks.paired_shift_by_ranks` stands beside it for that.
Reference: Montgomery, Design and Analysis of Experiments, ch. 4; Searle, Linear Models, ch. 5.
"""

from __future__ import annotations

from wattwire.stats.blocked import (
    Contrast,
    Fit,
    Level,
    Unanswered,
    contrast_interval,
    contrast_of,
)
from wattwire.stats.results import NotComputable


class Difference(Contrast):
    """Typical or mean `level` minus `baseline`, with an interval, in the response's unit."""


def difference(
    fit: Fit,
    factor: str,
    level: Level,
    baseline: Level,
    confidence: float = 0.95,
    within: tuple[str, Level] | None = None,
    names: tuple[str, str] | None = None,
) -> Difference | Unanswered:
    """`level` − `baseline` at `confidence` for this one interval; the rest as `blocked.ratio`.

    Raises ValueError for a fit on the log scale.
    """
    if fit.scale != "plain":
        raise ValueError(f"fit: {fit.scale} scale found; differences are taken on the plain scale")
    asked = contrast_of(fit, factor, (level, baseline), within, names)
    if not isinstance(asked, tuple):
        return asked
    weights, strata = asked
    if not fit.variance > 0:
        centre = float(weights @ fit.coefficients)
        upper, lower = names or (level, baseline)
        return NotComputable(
            f"{upper} minus {lower} is {centre:.3g} without any scatter between runs: no error to "
            "judge it by"
        )
    interval = contrast_interval(fit, weights, confidence)
    return Difference(
        factor, level, baseline, interval, strata, fit.run_count, fit.block_count, fit.kind
    )
