"""Estimate bootstrap intervals of any statistic over whole runs or whole blocks.

What it computes: the confidence interval of any statistic of run summaries, such as a median or
trimmed mean.
How: bias-corrected and accelerated percentiles of seeded resamples of whole runs, or of blocks with
one value each.
What it misses: with fewer than RUNS_MIN runs, the coverage is below the nominal level (.74 to .90
at a nominal .95 with 3 to 10 runs), so the function returns no interval. Messages within a run are
never resampled, because they are not replicates.
Reference: Efron 1987, JASA 82:171; Efron & Tibshirani, An Introduction to the Bootstrap, ch. 14.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]

RUNS_MIN = 20
RESAMPLES = 9_999
SEED = 1


def bootstrap_interval(
    values: Sequence[float] | FloatArray,
    statistic: Callable[..., FloatArray],
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval | TooFew | NotComputable:
    """Return `statistic` of one finite value per run with its BCa interval, in the data's unit.

    `statistic` takes an array and `axis`, like NumPy functions.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.size < RUNS_MIN:
        return TooFew(data.size, RUNS_MIN, "runs for a bootstrap interval")
    if not np.isfinite(data).all():
        return NotComputable("a value is missing or infinite in a run")
    if np.ptp(data) == 0:
        return NotComputable("all values are equal")
    with warnings.catch_warnings():
        # A degenerate acceleration also gives NaN limits, which the check below detects.
        warnings.simplefilter("ignore", category=RuntimeWarning)
        limits = scipy.stats.bootstrap(
            (data,), statistic, n_resamples=resamples, confidence_level=confidence,
            method="BCa", rng=np.random.default_rng(SEED), vectorized=True, axis=-1,
        ).confidence_interval  # fmt: skip
    if not (np.isfinite(limits.low) and np.isfinite(limits.high)):
        return NotComputable("the statistic does not vary between resamples")
    return Interval(
        float(statistic(data, axis=-1)),
        float(limits.low),
        float(limits.high),
        confidence,
        int(data.size),
        "BCa bootstrap of whole runs",
    )
