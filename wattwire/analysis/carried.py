"""Require a minimum number of messages for the use of a run's latency percentile.

An answer, a median over runs or a limit uses the percentile of a run only if the run has at least
`stats.carried_size` messages, including lost and unsent messages.

What it misses: whether the messages are independent. The interval of such an answer is computed
over runs, so the scatter of the runs already includes dependence within a run. The percentile of a
single run (`stats.percentile`) has a stricter rule.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire import stats
from wattwire.model.derived import (
    QUANTILE,
    FloatArray,
    column,
    due_after_warmup,
    flow_suffix,
    without_arrival,
)

WHAT = "messages in a run"


def share_of(name: str) -> float | None:
    """Return the quantile of a percentile column (0.99 for latency_p99_us); None for others."""
    quantile = QUANTILE.fullmatch(name.removesuffix(flow_suffix(name)))
    digits = quantile["digits"] if quantile else None
    return int(digits) / 10 ** len(digits) if digits else None


def too_few(frame: pl.DataFrame, name: str) -> NDArray[np.bool_]:
    """Return whether each run has too few messages for column `name`, shape (runs,).

    If the messages of a run were not counted (imported data), the rule does not apply. It also does
    not apply if significantly (at 95 %) more messages were lost or failed than the percentile
    allows. The percentile is then infinite for any number of messages.
    """
    share, counts = share_of(name), due_after_warmup(frame, flow_suffix(name))
    if share is None:
        return np.zeros(frame.height, dtype=np.bool_)
    few = np.asarray(counts < stats.carried_size(share), dtype=np.bool_)
    if few.any():
        gone = without_arrival(frame, flow_suffix(name))
        for run in np.flatnonzero(few & (counts > 0) & (gone > 0)):
            lost_share = stats.share_interval(int(gone[run]), int(counts[run]))
            few[run] = lost_share.low <= 1.0 - share
    return few


def why_not(frame: pl.DataFrame, name: str) -> stats.TooFew | None:
    """Return the smallest number of messages of a run and the required number, or None.

    The result is None if all runs have enough messages.
    """
    share = share_of(name)
    if share is None or not too_few(frame, name).any():
        return None
    counts = due_after_warmup(frame, flow_suffix(name))
    fewest = float(np.nanmin(counts[too_few(frame, name)]))
    return stats.TooFew(fewest, stats.carried_size(share), WHAT)


def carried(frame: pl.DataFrame, name: str) -> FloatArray:
    """Return column `name`, shape (runs,); NaN for runs with too few messages."""
    return np.where(too_few(frame, name), np.nan, column(frame, name))
