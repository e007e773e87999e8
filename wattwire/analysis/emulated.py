"""Keep the times and costs of emulated devices out of all comparisons.

A round trip to a device that an emulator executes takes the time of the emulator, not that of the
device. Such runs have no times, rates, costs or memory in the frames from which wattwire answers
questions. Their counts remain, because wattwire checks them as in every run.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire.model.metrics import METRICS

DEVICE = "emulated_device"
"""Column with the names of the devices; empty or missing without emulated devices."""
COUNT_UNITS = ("messages", "calls", "clients")
INSTRUCTIONS = "instructions_per_block"
"""Metric that an emulator counts exactly, at any speed."""


def is_emulated(frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Return whether each run has an emulated device, shape (runs,)."""
    if DEVICE not in frame.columns:
        return np.zeros(frame.height, dtype=np.bool_)
    return np.asarray(frame.select(_has_device()).to_series().to_numpy(), dtype=np.bool_)


def without_times(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame without the times and costs of runs with an emulated device."""
    if not is_emulated(frame).any():
        return frame
    return frame.with_columns(
        pl.when(_has_device()).then(None).otherwise(pl.col(name)).alias(name)
        for name in frame.columns
        if _depends_on_time(name)
    )


def _has_device() -> pl.Expr:
    return pl.col(DEVICE).cast(pl.String).fill_null("") != ""


def _depends_on_time(name: str) -> bool:
    metric = METRICS.get(name.split(".")[0])
    if metric is None or not metric.is_number:
        return False
    is_evidence = metric.evidence or metric.harness
    return not (is_evidence or metric.unit in COUNT_UNITS or metric.of_emulated)
