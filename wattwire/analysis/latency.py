"""Provide the latencies and losses of each run in order of their due time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire.analysis.dataset import Evidence, unanswered
from wattwire.analysis.emulated import is_emulated
from wattwire.model.deployment import deployment_of_run
from wattwire.model.derived import FloatArray, column
from wattwire.model.hosts.clocks import ONE_CLOCK, clocks_of_run
from wattwire.model.ledger import announced, deliveries, infinite
from wattwire.model.validity import CONDITION_CODES
from wattwire.store import Messages
from wattwire.store.messages import together

SHORT_BYTES, BATCH_BYTES = 1 << 16, 1 << 21
"""Largest file of a run that is read together with others, and size of such a batch, in bytes."""
RUN_COUNTERS = 1 << 40
"""Range of counters of one run of a batch."""


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
    values, since_send = _in_due_order(due_parts)
    warm_up_us = np.concatenate(warm_up_parts)
    return _with_losses(values, since_send, warm_up_us, recorded_lost, lost, unsent)


def _with_losses(
    values_us: FloatArray,
    since_send_us: FloatArray,
    warm_up_us: FloatArray,
    recorded_lost: int,
    lost: float,
    unsent: int,
) -> Series:
    """Return a series to which the losses without a sender's record are added; see `series_of`."""
    loose = unsent + (max(0, round(lost) - recorded_lost) if math.isfinite(lost) else 0)
    if loose:
        unanswered_us = np.full(loose, math.inf)
        values_us, since_send_us = (
            np.concatenate([known, unanswered_us]) for known in (values_us, since_send_us)
        )
    return Series(values_us, loose, warm_up_us, since_send_us, unsent)


@dataclass(frozen=True)
class _Due:
    """Latencies of one part of a run and their sort keys, each of shape (deliveries,)."""

    latency_us: FloatArray
    since_send_us: FloatArray
    """The same array as `latency_us` if all messages were sent when they were due."""
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
        latency_us, since_send_us, due_ns, *nodes = (column.to_numpy() for column in ordered)
        # A closed loop has equal times, which need no second array, as do the nodes of one flow.
        if np.array_equal(latency_us, since_send_us):
            since_send_us = latency_us
        return cls(latency_us, since_send_us, due_ns, *map(_compact, nodes))


def _compact(nodes: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the same array, with the memory of one value if all are equal."""
    is_constant = nodes.size > 0 and bool((nodes == nodes[0]).all())
    return np.broadcast_to(nodes[0].copy(), nodes.shape) if is_constant else nodes


def _in_due_order(parts: list[_Due]) -> tuple[FloatArray, FloatArray]:
    """Return all latencies and times since the send call, shape (n,), in order of `deliveries`.

    The parts are in the order of their counters. The list is emptied, and arrays are freed as soon
    as possible, because those of a long run take most of the memory.
    """
    filled = [part for part in parts if part.due_ns.size]
    parts.clear()
    order = None
    if not all(a.due_ns[-1] < b.due_ns[0] for a, b in itertools.pairwise(filled)):
        order = np.lexsort(
            [
                np.concatenate([getattr(part, name) for part in filled])
                for name in ("senders", "nodes", "due_ns")
            ]
        )
    is_sent_when_due = all(part.since_send_us is part.latency_us for part in filled)
    latencies, since_sends = ([p.latency_us for p in filled], [p.since_send_us for p in filled])
    filled.clear()
    if is_sent_when_due:
        since_sends.clear()
    values = _joined(latencies, order)
    return values, values if is_sent_when_due else _joined(since_sends, order)


def _joined(arrays: list[FloatArray], order: NDArray[np.int64] | None) -> FloatArray:
    """Return the values of all arrays in this order, and empty the list."""
    joined = np.concatenate([np.empty(0), *arrays])
    arrays.clear()
    return joined if order is None else joined[order]


def all_series(evidence: Evidence) -> dict[str, Series]:
    """Return the latency series of every valid run, by run; empty for imported campaigns.

    Runs with an emulated device are omitted.
    """
    if evidence.imported or not evidence.usable.height:
        return {}
    return _series(evidence, evidence.usable)


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
    return _series(evidence, frame.filter(pl.Series(is_sound, dtype=pl.Boolean)))


def _series(evidence: Evidence, frame: pl.DataFrame) -> dict[str, Series]:
    frame = frame.filter(pl.Series(~is_emulated(frame), dtype=pl.Boolean))
    runs = frame["run"].to_list()
    unsent = np.nan_to_num(column(frame, "unsent_after_warmup")).astype(int).tolist()
    numbers = zip(map(float, unanswered(frame)), unsent, strict=True)
    missing = dict(zip(runs, numbers, strict=True))
    series: dict[str, Series] = {}
    for batch in _batches(evidence, runs):
        series |= _series_together(evidence, batch, missing)
    return {run: series[run] for run in runs}


def _batches(evidence: Evidence, runs: Sequence[str]) -> Iterator[dict[str, Path]]:
    """Yield the runs with the paths of their records.

    Short runs with the same flows and one clock form a batch. Every other run is alone.
    """
    batches: dict[Any, tuple[dict[str, Path], list[int]]] = {}
    for run in runs:
        document = evidence.runs[run]
        path = evidence.reader.records_path(f"{run}-{document['attempt']}")
        size = path.stat().st_size if path.is_file() else 0
        if not 0 < size <= SHORT_BYTES or clocks_of_run(document) is not ONE_CLOCK:
            yield {run: path}
            continue
        flows = deployment_of_run(document).flows
        paths, sizes = batches.setdefault(flows, ({}, []))
        paths[run] = path
        sizes.append(size)
        if sum(sizes) >= BATCH_BYTES:
            yield batches.pop(flows)[0]
    yield from (paths for paths, _ in batches.values())


def _series_together(
    evidence: Evidence, batch: Mapping[str, Path], missing: Mapping[str, tuple[float, int]]
) -> dict[str, Series]:
    """Return the series of the runs of a batch; see `series_of`.

    `missing` has the numbers of lost and of unsent deliveries of each run.

    The counters of each run get a range of their own, so that all runs are one run of `deliveries`.
    """
    runs = list(batch)
    records = together(list(batch.values())) if len(batch) > 1 else None
    if records is None or not records["counter"].is_between(0, RUN_COUNTERS - 1).all():
        return {
            run: series_of(evidence.reader.recorded(run), evidence.runs[run], lost, unsent=unsent)
            for run, (lost, unsent) in ((run, missing[run]) for run in runs)
        }
    flows = deployment_of_run(evidence.runs[runs[0]]).flows
    origins: dict[int, set[tuple[int, int, str]]] = {index: set() for index in range(len(runs))}
    for file, *origin in records.select("file", "node", "sender", "kind").unique().iter_rows():
        origins[file].add((origin[0], origin[1], origin[2]))
    files_of: dict[frozenset[int], list[int]] = {}
    for file, its_origins in origins.items():
        files_of.setdefault(announced(its_origins, flows), []).append(file)
    counter = pl.col("counter").cast(pl.Int64) + pl.col("file") * RUN_COUNTERS
    series: dict[str, Series] = {}
    for known_senders, files in files_of.items():
        part = records.filter(pl.col("file").is_in(files)).with_columns(counter)
        expected = deliveries(part, flows, known_senders)
        file_of = expected["counter"].to_numpy() // RUN_COUNTERS
        order = np.argsort(file_of, kind="stable")
        bounds = np.searchsorted(file_of[order], [*files, len(runs)])
        ordered = expected[order]
        for file, (begin, end) in zip(files, itertools.pairwise(bounds), strict=True):
            of_run = ordered.slice(begin, end - begin)
            series[runs[file]] = _series_from(of_run, *missing[runs[file]])
    return series


def _series_from(expected: pl.DataFrame, lost: float, unsent: int) -> Series:
    """Return the series of one run from its deliveries by due time."""
    latency_us, since_send_us, warm_up = (
        expected[name].to_numpy() for name in ("latency_us", "since_send_us", "warm_up")
    )
    recorded_lost = int(np.count_nonzero(np.isinf(latency_us)))
    known = ~np.isnan(latency_us)
    values_us, since_send_us = (times[known & ~warm_up] for times in (latency_us, since_send_us))
    return _with_losses(
        values_us, since_send_us, latency_us[known & warm_up], recorded_lost, lost, unsent
    )
