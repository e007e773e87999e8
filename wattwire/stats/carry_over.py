"""Does a run bear the mark of the one before it?

What: whether the level that the predecessor had moves the response; drift along a block's positions
is asked by `slope` of the same model.
How: the predecessor's level joins the block model of the response and is tested by F.
What it misses: what is left over for longer than one run; with neighbours that always hold the
other level, part of the predecessor's mark cannot be told from the run's own level.
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
    """F test over the levels of `predecessors`, one per run; None where no run went before."""
    values = np.asarray(response, dtype=np.float64)
    known = np.array([level is not None for level in predecessors], dtype=bool)
    levels = list(dict.fromkeys(level for level in predecessors if level is not None))
    if len(levels) < 2:
        return NotComputable("every run followed one and the same level")
    kept = [i for i, found in enumerate(known) if found]
    fit = fit_log(
        values[known],
        [blocks[i] for i in kept],
        {name: [column[i] for i in kept] for name, column in factors.items()},
        np.array([[float(predecessors[i] == one) for one in levels[1:]] for i in kept]),
    )
    if not isinstance(fit, Fit):
        return fit
    rows = np.zeros((len(levels) - 1, fit.design.shape[1]))
    rows[:, 1 - len(levels) :] = np.eye(len(levels) - 1)
    if not all(is_estimable(fit, row) for row in rows):
        return NotComputable("the order ties a run's own level to its predecessor's")
    return effect_of(fit, ("predecessor",), rows, 0.95)
