"""Compute the rates, latencies and losses of each flow over the runs of each treatment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import FloatArray, after_warmup, column

QUANTILES = ("latency_p50_us", "latency_p90_us", "latency_p99_us")
Value = float | stats.TooFew | None


@dataclass(frozen=True)
class FlowResult:
    """One flow of a treatment.

    - `offered_hz` is the rate of the study, and `achieved_hz` the mean over the runs.
    - `throughput` is the mean of the payload that arrived (bytes/s).
    - `latency_us` has the geometric mean over the runs of each of QUANTILES, as in the answers;
      +inf if the quantile of a run falls on lost messages.
    - `expected` and `lost` are sums over the runs, without the warm-up; None if a run lacks them.
    - `late_percent` and `too_late_percent` are means over the runs of the classes that iRobot's
      ros2-performance defines: later than the soft deadline but not than the hard one, and later
      than the hard one or never.
    """

    treatment: tuple[str, ...]
    flow: str
    runs: int
    payload_bytes: int
    offered_hz: float
    achieved_hz: float | None
    throughput: float | None
    latency_us: tuple[Value, ...]
    expected: int | None
    lost: int | None
    late_percent: float | None = None
    too_late_percent: float | None = None


def flow_results(evidence: Evidence) -> Iterator[FlowResult]:
    """Yield the flows of each treatment with valid runs, in the study's order."""
    for key, frame in by_treatment(evidence, evidence.usable).items():
        for flow in evidence.study.flows:
            name = f"sent.flow.{flow.name}"
            if name in frame.columns and frame[name].null_count() < frame.height:
                too_late = _mean(frame, f"hard_deadline_missed_share.flow.{flow.name}")
                late_at_all = _mean(frame, f"soft_deadline_missed_share.flow.{flow.name}")
                yield FlowResult(
                    key,
                    flow.name,
                    frame.height,
                    flow.payload_bytes,
                    flow.rate_hz,
                    _mean(frame, f"rate_hz_achieved.flow.{flow.name}"),
                    _mean(frame, f"throughput_bytes_per_s.flow.{flow.name}"),
                    tuple(_typical(frame, f"{stem}.flow.{flow.name}") for stem in QUANTILES),
                    _sum(after_warmup(frame, "expected", f".flow.{flow.name}")),
                    _sum(after_warmup(frame, "lost", f".flow.{flow.name}")),
                    _percent(late_at_all, too_late),
                    _percent(too_late, 0.0),
                )


def _known(frame: pl.DataFrame, name: str) -> FloatArray:
    values = column(frame, name)
    return values[~np.isnan(values)]


def _mean(frame: pl.DataFrame, name: str) -> float | None:
    values = _known(frame, name)
    return float(values.mean()) if len(values) else None


def _percent(share: float | None, without: float | None) -> float | None:
    """Return the difference of two shares in percent; None if one is unknown."""
    return None if share is None or without is None else 100.0 * (share - without)


def _typical(frame: pl.DataFrame, name: str) -> Value:
    """Return the geometric mean over the runs, or the reason if a run has too few messages."""
    values = _known(frame, name)
    too_few = carried.why_not(frame, name)
    if too_few or not len(values):
        return too_few
    # Clocks of two hosts can make a latency negative; it has no logarithm.
    return float(np.exp(np.log(values).mean())) if (values > 0).all() else None


def _sum(values: FloatArray) -> int | None:
    return None if np.isnan(values).any() else int(values.sum())
