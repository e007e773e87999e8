"""Test for carry-over from one run to the next run, and for drift over the campaign.

What it computes: whether the level of the preceding run changes the response, and by which factor
the response changes from the first to the last run. (`slope` of the block model tests for drift
over a block's positions.)
How: the level of the preceding run is added to the block model of the response and tested by F. The
drift is the slope of the logarithm over the run order, with a mean per treatment and no block
effects, which would absorb it; its t interval has one error for all runs.
What it misses: carry-over that lasts longer than one run. Drift that returns to its start. Slow
changes of the machine that are no trend also count as drift. If neighbours always have different
levels, the effect of the preceding run is partly confounded with the level of the run.
Reference: Jones & Kenward, Design and Analysis of Cross-Over Trials, ch. 5 (carry-over in designs
of several periods); Montgomery, Design and Analysis of Experiments, ch. 4.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wattwire.stats.blocked import Fit, Level, fit_log, is_estimable, slope
from wattwire.stats.results import Interval, NotComputable, TooFew
from wattwire.stats.variance import Effect, effect_of

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable


def drift(
    response: Sequence[float] | FloatArray,
    treatments: Sequence[Hashable],
    places: Sequence[float] | FloatArray,
    confidence: float,
) -> Interval | Unanswered:
    """Return the factor by which the response changes over the campaign, with a t interval.

    `treatments` and `places`, the positions in the order of all runs, have one entry per run.
    """
    order = np.asarray(places, dtype=np.float64)
    # Centring within treatments in place of blocks removes the means of the treatments.
    fit = fit_log(response, treatments, {}, order)
    if not isinstance(fit, Fit):
        return fit
    if not fit.variance > 0:
        return NotComputable("the runs do not scatter, so the error of the drift is unknown")
    return slope(fit, float(np.ptp(order)), confidence)


def predecessor_effect(
    response: Sequence[float] | FloatArray,
    blocks: Sequence[Hashable],
    factors: Mapping[str, Sequence[Level]],
    predecessors: Sequence[Level],
) -> Effect | Unanswered:
    """Return the F test over the levels of `predecessors`.

    `predecessors` has one level per run, or None for a run without a preceding run.
    """
    values = np.asarray(response, dtype=np.float64)
    has_predecessor = np.array([level is not None for level in predecessors], dtype=bool)
    levels = list(dict.fromkeys(level for level in predecessors if level is not None))
    if len(levels) < 2:
        return NotComputable("the same level preceded every run")
    indices = [index for index, preceded in enumerate(has_predecessor) if preceded]
    fit = fit_log(
        values[has_predecessor],
        [blocks[index] for index in indices],
        {name: [column[index] for index in indices] for name, column in factors.items()},
        np.array(
            [[float(predecessors[index] == level) for level in levels[1:]] for index in indices]
        ),
    )
    if not isinstance(fit, Fit):
        return fit
    rows = np.zeros((len(levels) - 1, fit.design.shape[1]))
    rows[:, 1 - len(levels) :] = np.eye(len(levels) - 1)
    if not all(is_estimable(fit, row) for row in rows):
        return NotComputable("the run order confounds a run's level with its predecessor's level")
    return effect_of(fit, ("predecessor",), rows, 0.95)
