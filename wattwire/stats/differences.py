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

from dataclasses import dataclass

import numpy as np

from wattwire.stats import distributions
from wattwire.stats.blocked import Fit, Level, Unanswered, contrast_of
from wattwire.stats.results import Interval, NotComputable


@dataclass(frozen=True)
class Difference:
    """Mean of `level` minus that of `baseline`, with a t interval, in the response's unit.

    `strata` as in `blocked.Ratio`.
    """

    factor: str
    level: Level
    baseline: Level
    interval: Interval
    strata: int
    run_count: int
    block_count: int
    kind: str


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
    centre = float(weights @ fit.coefficients)
    if not fit.variance > 0:
        upper, lower = names or (level, baseline)
        return NotComputable(
            f"{upper} minus {lower} is {centre:.3g} without any scatter between runs: no error to "
            "judge it by"
        )
    error = float(np.sqrt(fit.variance * (weights @ fit.covariance_base @ weights)))
    half = float(distributions.t.ppf(0.5 + confidence / 2, fit.degrees)) * error
    interval = Interval(
        centre, centre - half, centre + half, confidence, fit.run_count,
        f"t, plain scale, {fit.kind}", float(fit.degrees),
    )  # fmt: skip
    return Difference(
        factor, level, baseline, interval, strata, fit.run_count, fit.block_count, fit.kind
    )
