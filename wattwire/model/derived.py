"""Compute the derived metrics of runs per message, per node and above the baseline.

The stored summary contains these metrics. For runs that are not in it yet, and for imported runs,
they are computed on reading.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire.model.deployment import role_of_column
from wattwire.model.flows import COLUMN
from wattwire.model.metrics import OF_FLOWS
from wattwire.model.quantiles import QUANTILE

FloatArray = NDArray[np.float64]


def column(frame: pl.DataFrame, name: str) -> FloatArray:
    """Return a numeric column of shape (rows,), with NaN for missing values or a missing column."""
    if name not in frame.columns:
        return np.full(frame.height, math.nan)
    values = frame[name]
    if values.dtype != pl.Float64:
        values = values.cast(pl.Float64, strict=False)
    return np.array(values.to_numpy(), dtype=np.float64)  # null becomes NaN


def members(frame: pl.DataFrame, prefix: str, role: str = "") -> list[str]:
    """Return the columns `prefix.<role>.<index>` of one role, or of all roles without `role`.

    The columns of other processes, such as services, are not included.
    """
    roles = {name: role_of_column(name, prefix) for name in frame.columns}
    return sorted(name for name, owner in roles.items() if owner and role in ("", owner))


def mean_of(frame: pl.DataFrame, names: Sequence[str]) -> FloatArray:
    """Return the mean of the known values in the named columns, shape (rows,).

    The mean is NaN if all values of a row are unknown.
    """
    if not names:
        return np.full(frame.height, math.nan)
    values = np.stack([column(frame, name) for name in names])
    is_known = np.isfinite(values)
    sums = np.where(is_known, values, 0.0).sum(axis=0)
    counts = is_known.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), math.nan)


def known_mean(values: FloatArray) -> float | None:
    """Return the mean of the finite values; None without any."""
    known = values[np.isfinite(values)]
    return float(np.mean(known)) if known.size else None


def known_geometric_mean(values: FloatArray) -> float | None:
    """Return the geometric mean of the finite positive values; None without any."""
    known = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.mean(np.log(known)))) if known.size else None


def derived(frame: pl.DataFrame) -> dict[str, FloatArray]:
    """Return the derived metrics of a summary by name, each of shape (rows,). NaN means unknown.

    Those of OF_FLOWS have a column per flow of the summary as well.
    """
    suffixes = sorted({flow_suffix(name) for name in frame.columns} - {""})
    of_flows = [name for name in DERIVED if name in OF_FLOWS]
    return {name: compute(frame, "") for name, compute in DERIVED.items()} | {
        f"{name}{suffix}": DERIVED[name](frame, suffix) for suffix in suffixes for name in of_flows
    }


def with_derived(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the summary with the missing derived metrics and with infinite quantiles.

    A quantile that falls on lost messages or failed calls is infinite, but is stored as unknown.
    """
    if frame.height == 0:
        return frame
    added = {name: v for name, v in derived(frame).items() if name not in frame.columns}
    for name in frame.columns:
        suffix = flow_suffix(name)
        stem = name.removesuffix(suffix)
        if QUANTILE.fullmatch(stem):
            has_infinite = without_arrival(frame, suffix) > 0
            values = column(frame, name)
            added[name] = np.where(np.isnan(values) & has_infinite, math.inf, values)
    return frame.with_columns([pl.Series(name, values) for name, values in added.items()])


def _ratio(values: FloatArray, over: FloatArray) -> FloatArray:
    """Return `values` / `over`, shape (rows,), with NaN if `over` is not positive."""
    return values / np.where(over > 0, over, math.nan)


def messages_of_costs(frame: pl.DataFrame) -> FloatArray:
    """Return the number of messages sent after the warm-up, shape (rows,).

    A cost per message is the cost divided by this number.
    """
    return _or_whole_run(frame, "sent_in_cost_window", "sent")


def after_warmup(frame: pl.DataFrame, count: str, suffix: str = "") -> FloatArray:
    """Return `expected`, `lost`, `failed`, … without the warm-up, shape (rows,).

    If the summary lacks this count, the count of the whole run replaces it. `suffix` selects the
    count of a flow (`flow_suffix`).
    """
    return _or_whole_run(frame, f"{count}_after_warmup{suffix}", f"{count}{suffix}")


def flow_suffix(name: str) -> str:
    """Return the part ".flow.NAME" of a column of a flow; "" for other columns."""
    of_flow = COLUMN.fullmatch(name)
    return name.removeprefix(of_flow["stem"]) if of_flow else ""


def without_arrival(frame: pl.DataFrame, suffix: str = "") -> FloatArray:
    """Return the messages and calls after the warm-up without a finite latency, shape (rows,).

    They are lost, failed, undelivered or unsent. `suffix` selects a flow (`flow_suffix`).
    """
    names = ("failed", "undelivered", "unsent")
    others = (np.nan_to_num(after_warmup(frame, name, suffix)) for name in names)
    return after_warmup(frame, "lost", suffix) + sum(others)


def share_of_due(frame: pl.DataFrame, count: str) -> float:
    """Return the share of the due messages of all runs that `count` counts, warm-up included.

    Messages are due whether they were sent or not. The share is 0 if none was due.
    """
    due = np.nansum(column(frame, "expected")) + np.nansum(column(frame, "unsent"))
    return float(np.nansum(column(frame, count)) / due) if due else 0.0


def due_after_warmup(frame: pl.DataFrame, suffix: str = "") -> FloatArray:
    """Return the deliveries that were due after the warm-up, sent or not, shape (rows,)."""
    unsent = np.nan_to_num(after_warmup(frame, "unsent", suffix))
    return after_warmup(frame, "expected", suffix) + unsent


DERIVED: dict[str, Callable[[pl.DataFrame, str], FloatArray]] = {
    "memory_kib_per_node": lambda frame, _: mean_of(frame, members(frame, "memory_kib")),
    "loss_share": lambda frame, flow: _ratio(
        after_warmup(frame, "lost", flow), after_warmup(frame, "expected", flow)
    ),
    "failed_share": lambda frame, flow: _ratio(
        after_warmup(frame, "failed", flow), after_warmup(frame, "expected", flow)
    ),
    "reordered_share": lambda frame, flow: _ratio(
        column(frame, f"reordered{flow}"), column(frame, f"received_unique{flow}")
    ),
    "energy_uj_per_message": lambda frame, _: (
        1e6 * _ratio(column(frame, "energy_message_j"), messages_of_costs(frame))
    ),
    # This energy covers the whole run, so it is divided by all sent messages.
    "energy_idle_subtracted_uj_per_message": lambda frame, _: (
        1e6 * _ratio(column(frame, "energy_idle_subtracted_j"), column(frame, "sent"))
    ),
    "time_us_per_message": lambda frame, _: _ratio(
        np.full(frame.height, 1e6), column(frame, "rate_hz_achieved")
    ),
    "power_above_machine_w": lambda frame, _: (
        column(frame, "power_window_w") - column(frame, "power_machine_w")
    ),
}
"""Metric → its values, of shape (rows,), for a frame and "" or the suffix of a flow."""


def _or_whole_run(frame: pl.DataFrame, name: str, whole: str) -> FloatArray:
    """Return the column `name`, shape (rows,), with unknown values from the column `whole`."""
    after_warmup_counts = column(frame, name)
    return np.where(np.isnan(after_warmup_counts), column(frame, whole), after_warmup_counts)
