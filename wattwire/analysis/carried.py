"""Require enough messages for a run's latency percentile, and a load below the capacity.

An answer, a median over runs or a limit uses the percentile of a run only if the run has at least
`stats.carried_size` messages, including lost and unsent messages.

What it misses: whether the messages are independent. The interval of such an answer is computed
over runs, so the scatter of the runs already includes dependence within a run. The percentile of a
single run (`stats.percentile`) has a stricter rule.

The latency of a saturated run grows for as long as the run lasts, and so does the cost of a message
that waits. Such a value is void: it describes the length of the run, so it enters no ratio and
breaks every upper limit. Rates, throughput, shares and memory remain. `not_compared.left_out`
decides whether such runs are left out alone, or with their treatment.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire import stats
from wattwire.model import words
from wattwire.model.derived import (
    FloatArray,
    column,
    due_after_warmup,
    flow_suffix,
    without_arrival,
)
from wattwire.model.quantiles import share_of
from wattwire.model.verdict import Outcome

WHAT = "messages in a run"
LATENCY = re.compile(r"(latency|since_send|delay_variation)_(p\d+|max|mean)_us(\..+)?")
COST = re.compile(r"(?!time_us).*_per_message(_above_silent)?(\..+)?")
"""Costs per message; `time_us_per_message` is a rate."""
OF_FLOW = ("undelivered", "unsent_after_warmup", "backlog_growth")
"""Counts of a flow that are above 0 if the flow is saturated."""
OTHER_CAUSES = (Outcome.HELD_UP, Outcome.DIED, Outcome.TIMED_OUT)
"""Outcomes that explain why messages of a flow were never sent."""


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


def saturated(frame: pl.DataFrame, name: str = "") -> NDArray[np.bool_]:
    """Return whether the load of each run was above the capacity, shape (runs,).

    For a response `name` of a flow, only this flow counts.
    """
    if suffix := flow_suffix(name):
        counts = np.stack([column(frame, f"{count}{suffix}") for count in OF_FLOW])
        is_above = np.asarray((np.nan_to_num(counts) > 0).any(axis=0), dtype=np.bool_)
        return is_above & ~_has_outcome(frame, *OTHER_CAUSES)
    return _has_outcome(frame, Outcome.SATURATED)


def _has_outcome(frame: pl.DataFrame, *outcomes: Outcome) -> NDArray[np.bool_]:
    if "outcome" not in frame.columns:
        return np.zeros(frame.height, dtype=np.bool_)
    is_one = frame["outcome"].is_in([outcome.value for outcome in outcomes]).fill_null(False)
    return np.asarray(is_one.to_numpy(), dtype=np.bool_)


def void(frame: pl.DataFrame, name: str) -> NDArray[np.bool_]:
    """Return whether saturation makes the response `name` of each run void, shape (runs,)."""
    if not (LATENCY.fullmatch(name) or COST.fullmatch(name)):
        return np.zeros(frame.height, dtype=np.bool_)
    return saturated(frame, name)


def why_void(frame: pl.DataFrame, name: str) -> stats.NotComputable | None:
    """Return the reason if the response `name` is void in any run, else None."""
    runs = int(void(frame, name).sum())
    if not runs:
        return None
    return stats.NotComputable(saturated_in(runs, frame.height))


def saturated_in(saturated_runs: int, runs: int) -> str:
    """Return the reason against a response of `runs` runs, of which some were saturated."""
    of_runs = f"{words.count(saturated_runs)} of {words.plural(runs, 'run')}"
    return f"the load was above the capacity (saturated) in {of_runs}"
