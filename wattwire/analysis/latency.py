"""Each run's latencies in the order in which they were due, with its losses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire.analysis.dataset import Evidence, unanswered
from wattwire.model.deliveries import announced, deliveries, infinite
from wattwire.model.derived import FloatArray
from wattwire.model.validity import CONDITION_CODES
from wattwire.store import Messages


@dataclass(frozen=True)
class Series:
    """Latencies of one run in µs, in the order in which they were due, lost = +inf.

    `loose` counts losses of which no sender left a record; they are at the end.
    """

    values_us: FloatArray
    loose: int


def series_of(
    messages: Messages, run: Mapping[str, Any], lost: float, with_warm_up: bool = False
) -> Series:
    """The latency of every expected delivery of a run, as the summary counts them.

    `lost` is the summary's count of the whole window: what it holds beyond the senders' records
    was sent by nobody knows whom and when.
    """
    roles = {node["node"]: node["role"] for node in run.get("nodes", [])}
    known_senders = announced(messages.origins, roles)
    parts, lost_count = [], 0
    for part in messages.parts():
        expected = deliveries(part, roles, known_senders)
        lost_count += infinite(expected)
        if not with_warm_up:
            expected = expected.filter(~pl.col("warm_up"))
        kept = expected.filter(pl.col("latency_us").is_not_null())
        parts.append(_Due.of(kept))
    loose = max(0, round(lost) - lost_count) if math.isfinite(lost) else 0
    values = _in_due_order(parts)
    if loose:
        values = np.concatenate([values, np.full(loose, math.inf)])
    return Series(values, loose)


@dataclass(frozen=True)
class _Due:
    """Latencies of one part of a run, and what they are ordered by; all of shape (n,)."""

    latency_us: FloatArray
    due_ns: NDArray[np.int64]
    nodes: NDArray[np.uint16]
    senders: NDArray[np.uint16]

    @classmethod
    def of(cls, expected: pl.DataFrame) -> _Due:
        """Those of deliveries in their order; an unknown time is after all others."""
        last = pl.col("due_ns").fill_null(np.iinfo(np.int64).max)
        columns = expected.select("latency_us", last, pl.col("node", "sender").cast(pl.UInt16))
        return cls(*(column.to_numpy() for column in columns))


def _in_due_order(parts: list[_Due]) -> FloatArray:
    """All latencies in the order of `deliveries`, from parts by ascending counters.

    The parts are given up for it.
    """
    filled = [part for part in parts if part.due_ns.size]
    apart = all(a.due_ns[-1] < b.due_ns[0] for a, b in itertools.pairwise(filled))
    parts.clear()
    values = np.concatenate([np.empty(0), *(part.latency_us for part in filled)])
    if apart:
        return values
    keys = [
        np.concatenate([getattr(part, name) for part in filled])
        for name in ("senders", "nodes", "due_ns")
    ]
    del filled
    return values[np.lexsort(keys)]


def all_series(evidence: Evidence) -> dict[str, Series]:
    """The latency series of every usable run, by run; none where no message was recorded."""
    if evidence.imported or not evidence.usable.height:
        return {}
    return dict(_series(evidence, evidence.usable))


def excluded_series(evidence: Evidence) -> dict[str, Series]:
    """The same of runs that were excluded for the machine's state: their messages are sound.

    Runs whose counts or clocks are in doubt are left out, and so is one that cannot be read.
    """
    frame = evidence.set_aside
    if evidence.imported or not frame.height:
        return {}
    sound = [
        bool(codes) and codes <= CONDITION_CODES
        for codes in (
            {str(reason["code"]) for reason in evidence.runs[run].get("reasons", [])}
            for run in frame["run"].to_list()
        )
    ]
    return dict(_series(evidence, frame.filter(pl.Series(sound, dtype=pl.Boolean))))


def _series(evidence: Evidence, frame: pl.DataFrame) -> Iterator[tuple[str, Series]]:
    for run, lost in zip(frame["run"].to_list(), unanswered(frame), strict=True):
        yield run, series_of(evidence.reader.recorded(run), evidence.runs[run], float(lost))
