"""Metrics of a run that follow from others: per message, per node, above the machine's own.

They are stored in the summary with the measured ones; summaries written before hold none of them,
so they are computed again where they lack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def column(frame: pl.DataFrame, name: str) -> FloatArray:
    """A numeric column, shape (rows,); NaN where unknown or where there is no such column."""
    if name not in frame.columns:
        return np.full(frame.height, math.nan)
    values = frame[name]
    if values.dtype != pl.Float64:
        values = values.cast(pl.Float64, strict=False)
    return np.array(values.to_numpy(), dtype=np.float64)  # what is missing becomes NaN


def members(frame: pl.DataFrame, prefix: str) -> list[str]:
    """Columns `prefix.<role>.<index>`, in order (service processes have no index)."""
    return sorted(c for c in frame.columns if c.startswith(prefix + ".") and c.count(".") == 2)


def mean_of(frame: pl.DataFrame, names: Sequence[str]) -> FloatArray:
    """Row-wise mean of the named columns over those that are known; NaN where none is."""
    if not names:
        return np.full(frame.height, math.nan)
    stack = np.stack([column(frame, name) for name in names])
    known = np.isfinite(stack)
    sums = np.where(known, stack, 0.0).sum(axis=0)
    counts = known.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), math.nan)


def derived(frame: pl.DataFrame) -> dict[str, FloatArray]:
    """Return the derived metrics of a summary's rows by name, shape (rows,) each, NaN: unknown."""
    sent, in_costs = column(frame, "sent"), messages_of_costs(frame)
    expected = after_warmup(frame, "expected")
    rate_hz = column(frame, "rate_hz_achieved")
    return {
        "memory_kib_per_node": mean_of(frame, members(frame, "memory_kib")),
        "loss_share": _ratio(after_warmup(frame, "lost"), expected),
        "failed_share": _ratio(after_warmup(frame, "failed"), expected),
        "energy_uj_per_message": 1e6 * _ratio(column(frame, "energy_message_j"), in_costs),
        # The energy of the run's whole life, over all that it sent.
        "energy_idle_subtracted_uj_per_message": 1e6
        * _ratio(column(frame, "energy_idle_subtracted_j"), sent),
        "time_us_per_message": _ratio(np.full(frame.height, 1e6), rate_hz),
        "power_above_machine_w": column(frame, "power_window_w") - column(frame, "power_machine_w"),
    }


def with_derived(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the derived metrics that a summary lacks, and tell an infinite quantile from none.

    A quantile among lost messages or failed calls is stored as unknown: it is infinite.
    """
    if frame.height == 0:
        return frame
    lost, failed = after_warmup(frame, "lost"), after_warmup(frame, "failed")
    without_end = lost + np.nan_to_num(failed) > 0
    fresh = {name: v for name, v in derived(frame).items() if name not in frame.columns}
    for name in frame.columns:
        if name.startswith("latency_p"):
            values = column(frame, name)
            fresh[name] = np.where(np.isnan(values) & without_end, math.inf, values)
    return frame.with_columns([pl.Series(name, values) for name, values in fresh.items()])


def _ratio(values: FloatArray, over: FloatArray) -> FloatArray:
    """`values` / `over`, shape (rows,); NaN where `over` is not above 0."""
    return values / np.where(over > 0, over, math.nan)


def messages_of_costs(frame: pl.DataFrame) -> FloatArray:
    """How many messages each run's costs are divided by: those sent after the warm-up."""
    return _else_whole(frame, "sent_in_cost_window", "sent")


def after_warmup(frame: pl.DataFrame, count: str) -> FloatArray:
    """`expected`, `lost` or `failed` without the warm-up's share, shape (rows,).

    That of the whole run where none was written.
    """
    return _else_whole(frame, f"{count}_after_warmup", count)


def _else_whole(frame: pl.DataFrame, name: str, whole: str) -> FloatArray:
    apart = column(frame, name)
    return np.where(np.isnan(apart), column(frame, whole), apart)
