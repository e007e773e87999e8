"""Test for carry-over from one run to the next run.

What it computes: whether the level of the preceding run changes the response. (`slope` of the same
model tests for drift over a block's positions.)
How: the level of the preceding run is added to the block model of the response and tested by F.
What it misses: carry-over that lasts longer than one run. If neighbours always have different
levels, the effect of the preceding run is partly confounded with the level of the run.
Reference: Jones & Kenward, Design and Analysis of Cross-Over Trials, ch. 5 (carry-over in designs
of several periods); Montgomery, Design and Analysis of Experiments, ch. 4.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wattwire.stats.blocked import Fit, Level, fit_log, is_estimable
from wattwire.stats.results import NotComputable, TooFew
from wattwire.stats.variance import Effect, effect_of

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable


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
