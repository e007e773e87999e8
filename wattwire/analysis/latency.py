"""Provide the latencies and losses of each run in order of their due time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire.analysis.dataset import Evidence, unanswered
from wattwire.analysis.offloading.emulated import is_emulated
from wattwire.model.deliveries import announced, deliveries, infinite
from wattwire.model.deployment import deployment_of_run
from wattwire.model.derived import FloatArray, column
from wattwire.model.hosts.clocks import clocks_of_run
from wattwire.model.validity import CONDITION_CODES
from wattwire.store import Messages


@dataclass(frozen=True)
class Series:
    """Latencies (µs) of one run in order of due time, shape (deliveries,); lost messages are +inf.

    `loose` is the number of losses without a sender's record. They are last, and `unsent` of them
    belong to messages that were due and never sent. `warm_up_us` contains the latencies of the
    warm-up, shape (warm-up deliveries,), which `values_us` omits.
    `since_send_us` starts at the send call, and has the order and the shape of `values_us`.
    """

    values_us: FloatArray
    loose: int
    warm_up_us: FloatArray = field(default_factory=lambda: np.empty(0))
    since_send_us: FloatArray = field(default_factory=lambda: np.empty(0))
    unsent: int = 0


def series_of(
    messages: Messages,
    run: Mapping[str, Any],
    lost: float,
    with_warm_up: bool = False,
    unsent: int = 0,
) -> Series:
    """Return the latency of each expected delivery of a run.

    `lost` is the number of losses in the summary, over the whole window. Sender and time are
    unknown for losses beyond the senders' records. `unsent` deliveries were due after the warm-up
    and never sent. If `with_warm_up` is true, `values_us` includes
    the warm-up, and `warm_up_us` is empty. The times of hosts with other clocks are corrected.
    """
    flows, messages = deployment_of_run(run).flows, messages.on_one_clock(clocks_of_run(run))
    known_senders = announced(messages.origins, flows)
    due_parts, warm_up_parts, recorded_lost = [], [np.empty(0)], 0
    for part in messages.parts():
        expected = deliveries(part, flows, known_senders)
        recorded_lost += infinite(expected)
        kept = expected.filter(pl.col("latency_us").is_not_null())
        if not with_warm_up and kept["warm_up"].any():
            warm_up_parts.append(kept.filter("warm_up")["latency_us"].to_numpy())
            kept = kept.filter(~pl.col("warm_up"))
        due_parts.append(_Due.of(kept))
    loose = unsent + (max(0, round(lost) - recorded_lost) if math.isfinite(lost) else 0)
    values, since_send = _in_due_order(due_parts)
    if loose:
        unanswered_us = np.full(loose, math.inf)
        values, since_send = (
            np.concatenate([known, unanswered_us]) for known in (values, since_send)
        )
    return Series(values, loose, np.concatenate(warm_up_parts), since_send, unsent)


@dataclass(frozen=True)
class _Due:
    """Latencies of one part of a run and their sort keys, each of shape (deliveries,)."""

    latency_us: FloatArray
    since_send_us: FloatArray
    due_ns: NDArray[np.int64]
    nodes: NDArray[np.uint16]
    senders: NDArray[np.uint16]

    @classmethod
    def of(cls, expected: pl.DataFrame) -> _Due:
        """Return the latencies of `expected` in the same order. An unknown due time sorts last."""
        due = pl.col("due_ns").fill_null(np.iinfo(np.int64).max)
        ordered = expected.select(
            "latency_us", "since_send_us", due, pl.col("node", "sender").cast(pl.UInt16)
        )
        return cls(*(column.to_numpy() for column in ordered))


def _in_due_order(parts: list[_Due]) -> tuple[FloatArray, FloatArray]:
    """Return all latencies and times since the send call, shape (n,), in order of `deliveries`.

    The parts are in the order of their counters. The list is emptied to free memory early.
    """
    filled = [part for part in parts if part.due_ns.size]
    is_ordered = all(a.due_ns[-1] < b.due_ns[0] for a, b in itertools.pairwise(filled))
    parts.clear()
    values, since_send = (
        np.concatenate([np.empty(0), *(getattr(part, name) for part in filled)])
        for name in ("latency_us", "since_send_us")
    )
    if not is_ordered:
        keys = [
            np.concatenate([getattr(part, name) for part in filled])
            for name in ("senders", "nodes", "due_ns")
        ]
        order = np.lexsort(keys)
        values, since_send = values[order], since_send[order]
    # A closed loop has equal times, which need no second array.
    return values, values if np.array_equal(values, since_send) else since_send


def all_series(evidence: Evidence) -> dict[str, Series]:
    """Return the latency series of every valid run, by run; empty for imported campaigns.

    Runs with an emulated device are omitted.
    """
    if evidence.imported or not evidence.usable.height:
        return {}
    return dict(_series(evidence, evidence.usable))


def excluded_series(evidence: Evidence) -> dict[str, Series]:
    """Return the series of runs that are excluded only because of the machine's state.

    Runs with invalid counts or clocks, and unreadable runs, are omitted.
    """
    frame = evidence.excluded
    if evidence.imported or not frame.height:
        return {}
    is_sound = [
        bool(codes) and codes <= CONDITION_CODES
        for codes in (
            {str(reason["code"]) for reason in evidence.runs[run].get("reasons", [])}
            for run in frame["run"].to_list()
        )
    ]
    return dict(_series(evidence, frame.filter(pl.Series(is_sound, dtype=pl.Boolean))))


def _series(evidence: Evidence, frame: pl.DataFrame) -> Iterator[tuple[str, Series]]:
    frame = frame.filter(pl.Series(~is_emulated(frame), dtype=pl.Boolean))
    unsent = np.nan_to_num(column(frame, "unsent_after_warmup")).astype(int).tolist()
    for run, lost, never in zip(frame["run"].to_list(), unanswered(frame), unsent, strict=True):
        messages, document = evidence.reader.recorded(run), evidence.runs[run]
        yield run, series_of(messages, document, float(lost), unsent=never)
