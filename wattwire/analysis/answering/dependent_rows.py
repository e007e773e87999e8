"""Refuse the model of imported rows that depend on each other within their only block.

A row of an imported table counts as a run, because the user declares it. With several blocks,
the error of a ratio comes from whole blocks. With one block, it comes from single rows. If these
are samples of a series, they repeat each other, and the interval would be much too narrow.

How: the lag-one correlation, in the order of the file, of the residuals within treatments. Those of
the main effects contain interactions, which neighbours share in a table sorted by treatment.
What it misses: a dependence of a few rows, which no test can detect, and rows in another order than
that of their measurement. Measured campaigns have a random order and need no such rule.
"""

from __future__ import annotations

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence
from wattwire.model import words

P_MAX = 0.01
CORRELATION_MIN = 0.1
"""Smallest correlation of consecutive rows that refuses a model. It makes an interval about 10 %
too narrow, as (1 + 0.1) / (1 − 0.1) is about the square of 1.1.
"""


class Dependent(stats.NotComputable):
    """No model, because consecutive rows of the only block are correlated."""


def refused(evidence: Evidence, fit: stats.Fit) -> Dependent | None:
    """Return the reason why the model of imported rows has no valid interval, else None."""
    if not evidence.imported or fit.block_sizes.size > 1:
        return None
    order = np.arange(fit.residuals.size, dtype=np.float64)
    found = stats.serial_correlation(stats.within_treatments(fit), order)
    if not isinstance(found, stats.SerialCorrelation) or found.p >= P_MAX:
        return None
    if found.correlation < CORRELATION_MIN:
        return None
    return Dependent(
        f"consecutive rows of a treatment are correlated ({words.number(found.correlation, 2)}), "
        "so they are no independent runs, and an interval would be too narrow. Import again with "
        "--factor COL for each other column in which they differ, --run COL for the run of each "
        "row, or --block COL"
    )
