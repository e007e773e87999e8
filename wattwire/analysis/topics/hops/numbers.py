"""Compute the losses and times of each hop of pipelines over the runs of each treatment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import column, known_geometric_mean

LOST, UNDELIVERED = "lost.hop", "undelivered.hop"
LATENCY, RELAY_TIME = "latency_p50_us.hop", "relay_time_p50_us.hop"


@dataclass(frozen=True)
class Hop:
    """One hop of a treatment. Hop N leads to the node at position N of the path.

    - `latency_us` is the geometric mean of the runs' median latencies of the hop; None if no run
      has one.
    - `relay_us` is the geometric mean of the medians of the relay's own time; None for the last
      hop.
    - `lost` is the number of losses in all runs; None if a run does not know it. `undelivered` is
      the number of messages that a saturated hop had not delivered in time.
    """

    treatment: tuple[str, ...]
    hop: int
    runs: int
    latency_us: float | None
    relay_us: float | None
    lost: int | None
    undelivered: int | None


@dataclass(frozen=True)
class Hops:
    """The hops of all treatments, in the order of treatments and hops."""

    hops: tuple[Hop, ...] = ()


def hops(evidence: Evidence) -> Hops:
    """Return the hops of each treatment with valid runs of a pipeline."""
    return Hops(tuple(_hops(evidence)) if evidence.has_messages else ())


def _hops(evidence: Evidence) -> Iterator[Hop]:
    for key, frame in by_treatment(evidence, evidence.usable).items():
        for hop in _hops_with_values(frame):
            yield Hop(
                key,
                hop,
                frame.height,
                known_geometric_mean(column(frame, f"{LATENCY}.{hop}")),
                known_geometric_mean(column(frame, f"{RELAY_TIME}.{hop}")),
                _sum(frame, f"{LOST}.{hop}"),
                _sum(frame, f"{UNDELIVERED}.{hop}"),
            )


def _sum(frame: pl.DataFrame, name: str) -> int | None:
    """Return the sum of a column over all runs; None if a run does not know it."""
    values = column(frame, name)
    return None if np.isnan(values).any() else int(values.sum())


def _hops_with_values(frame: pl.DataFrame) -> list[int]:
    """Return the hops for which any run has a count or a latency, in ascending order."""
    numbers = {
        int(name.rpartition(".")[2])
        for name in frame.columns
        if name.startswith((f"{LOST}.", f"{LATENCY}.")) and frame[name].null_count() < frame.height
    }
    return sorted(numbers)
