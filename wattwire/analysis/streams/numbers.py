"""Compute rate, latency, age and loss of each publisher on each topic in a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wattwire.analysis.streams.recorded import NO_SEQUENCE, NO_STAMP, Graph, Records
from wattwire.stats.series.percentiles import nearest_rank
from wattwire.stats.series.streams import (
    SequenceFaults,
    arrivals,
    clock_jumps,
    first_occurrences,
    sequence_faults,
)

AGE_NS_MAX = 86_400 * 1_000_000_000
"""Age of a stamp (ns), one day, above which it is not from the wall clock."""
AFTER_JUMP_NS = 1_000_000_000
"""Time (ns) after a jump of the clock in which latencies are not used."""
SILENT_INTERVALS = 10.0
SILENT_S_MIN = 1.0
"""A publisher is silent at the end after this number of its intervals, and at least this time."""
OTHER_HOST, NO_TIME, AHEAD, NO_MESSAGE = "other_host", "no_time", "ahead", "no_message"
NO_STAMPS, ZERO_STAMPS, OTHER_CLOCK = "no_stamps", "zero_stamps", "other_clock"


@dataclass(frozen=True)
class Delays:
    """Percentiles of the delays of messages, in µs."""

    p50_us: float
    p95_us: float
    p99_us: float
    max_us: float
    count: int


@dataclass(frozen=True)
class Stamps:
    """Stamps in the headers of messages: their number, and those that give no age."""

    stamps: int
    zero: int
    ahead: int
    """Stamps after the take: from another clock, or in the future."""
    old: int
    """Stamps that are more than a day old."""


@dataclass(frozen=True)
class Stream:
    """The messages of a publisher on a topic in a window."""

    topic: str
    node: str
    type: str
    gid: str
    qos: Mapping[str, Any]
    same_host: bool | None
    messages: int
    before: int
    """Messages from before the window, or from before the probe subscribed to the topic."""
    rate_hz: float | None
    interval_sd_ms: float | None
    bytes_mean: float | None
    bytes_per_s: float | None
    latency: Delays | None
    no_latency: str
    """Why there is no latency; "" if there is one."""
    age: Delays | None
    no_age: str
    stamps: Stamps
    faults: SequenceFaults | None
    """None if the middleware does not number publications."""
    silent_s: float | None
    """Time (s) from the last message to the end of the window, if the publisher fell silent."""
    gone: bool
    """Whether the graph no longer had the publisher at the end."""

    def as_json(self) -> dict[str, Any]:
        return {"kind": "stream", **asdict(self)}


@dataclass(frozen=True)
class ProbeCost:
    """CPU time and memory of the probe in the window."""

    cpu_share: float
    cpu_us_per_message: float | None
    memory_peak_kib: int


@dataclass(frozen=True)
class Watched:
    """All streams of a window, sorted by topic and node."""

    window_s: float
    streams: list[Stream]
    graph: Graph
    cost: ProbeCost | None
    jumps: list[tuple[float, float]] = field(default_factory=list)
    """Time (s) in the window and movement (s) of each jump of the wall clock."""


def watched(graph: Graph, records: Records, begin_ns: int, end_ns: int) -> Watched:
    """Return the numbers of the window from `begin_ns` to `end_ns` (monotonic)."""
    monotonic_ns = records["monotonic_ns"]
    first, last = np.searchsorted(monotonic_ns, [begin_ns, end_ns])
    inside, before = records[first:last], records[:first]
    jumps = clock_jumps(inside["taken_ns"], inside["monotonic_ns"])
    counts_before = np.bincount(before["stream"]) if before.size else np.empty(0, np.int64)
    order = np.argsort(inside["stream"], kind="stable")
    indices = inside["stream"][order]
    streams = []
    for index, fact in graph.streams.items():
        own = inside[order[slice(*np.searchsorted(indices, [index, index + 1]))]]
        count_before = int(counts_before[index]) if index < counts_before.size else 0
        is_kept = _kept_for_new_readers(graph, fact, own)
        count_before += int(np.count_nonzero(is_kept))
        own = own[~is_kept]
        if fact.get("read") is False and not own.size:
            continue
        if not own.size and _was_gone_before(graph, index, begin_ns):
            continue
        is_usable = np.ones(own.size, dtype=np.bool_)
        for jump_ns, _ in jumps:
            after_ns = own["monotonic_ns"] - jump_ns
            is_usable &= (after_ns < 0) | (after_ns > AFTER_JUMP_NS)
        streams.append(_stream(fact, own, is_usable, count_before, end_ns, index in graph.gone_ns))
    return Watched(
        window_s=(end_ns - begin_ns) / 1e9,
        streams=sorted(streams, key=lambda stream: (stream.topic, stream.node, stream.gid)),
        graph=graph,
        cost=_cost(graph, begin_ns, end_ns),
        jumps=[((at_ns - begin_ns) / 1e9, moved_ns / 1e9) for at_ns, moved_ns in jumps],
    )


def _was_gone_before(graph: Graph, index: int, begin_ns: int) -> bool:
    return graph.gone_ns.get(index, begin_ns) < begin_ns


def _kept_for_new_readers(
    graph: Graph, fact: Mapping[str, Any], records: Records
) -> NDArray[np.bool_]:
    """Return which messages were published before the probe subscribed to their topic.

    A publisher with the durability transient_local sends them to each new reader. Their age says
    nothing about the way of a message.
    """
    subscribed_ns = graph.topics.get(fact.get("topic", ""), {}).get("subscribed_ns")
    if subscribed_ns is None or fact.get("same_host") is False:
        return np.zeros(records.size, dtype=np.bool_)
    return (records["source_ns"] > 0) & (records["source_ns"] < subscribed_ns)


def _stream(
    fact: Mapping[str, Any],
    records: Records,
    is_usable: NDArray[np.bool_],
    before: int,
    end_ns: int,
    gone: bool,
) -> Stream:
    """Return a publisher's stream. `is_usable` states which records have a usable latency."""
    same_host = fact.get("same_host")
    faults = None
    if records.size and not np.any(records["sequence"] == NO_SEQUENCE):
        faults = sequence_faults(records["sequence"])
        is_usable = is_usable & first_occurrences(records["sequence"])
    arrival = arrivals(records["monotonic_ns"])
    mean = float(np.mean(records["bytes"])) if records.size else None
    rate_hz = arrival.rate_hz
    latency, no_latency = _latency(records[is_usable], same_host)
    age, no_age, stamps = _age(records[is_usable], same_host)
    silent_s = None
    if records.size and rate_hz:
        since_last_s = (end_ns - int(records["monotonic_ns"][-1])) / 1e9
        if since_last_s > max(SILENT_S_MIN, SILENT_INTERVALS / rate_hz):
            silent_s = since_last_s
    return Stream(
        topic=fact.get("topic", ""),
        node=fact.get("node", ""),
        type=fact.get("type", ""),
        gid=fact["gid"],
        qos=fact.get("qos", {}),
        same_host=same_host,
        messages=int(records.size),
        before=before,
        rate_hz=rate_hz,
        interval_sd_ms=None if arrival.interval_sd_s is None else 1e3 * arrival.interval_sd_s,
        bytes_mean=mean,
        bytes_per_s=None if mean is None or rate_hz is None else mean * rate_hz,
        latency=latency,
        no_latency=no_latency,
        age=age,
        no_age=no_age,
        stamps=stamps,
        faults=faults,
        silent_s=silent_s,
        gone=gone,
    )


def _latency(records: Records, same_host: bool | None) -> tuple[Delays | None, str]:
    """Return the delays from the publication to the take, or the reason why there are none.

    A clock of another host that is behind would show as a negative latency; one that is ahead would
    not show at all, so the latency from another host is never computed.
    """
    if not records.size:
        return None, NO_MESSAGE
    if same_host is False:
        return None, OTHER_HOST
    if not np.all(records["source_ns"] > 0):
        return None, NO_TIME
    delays_ns = records["taken_ns"] - records["source_ns"]
    if np.any(delays_ns < 0):
        return None, AHEAD
    return _delays(delays_ns), ""


def _age(records: Records, same_host: bool | None) -> tuple[Delays | None, str, Stamps]:
    """Return the delays from the stamps to the take, the reason for none, and the stamps."""
    stamped = records[records["stamp_ns"] != NO_STAMP]
    ages_ns = stamped["taken_ns"] - stamped["stamp_ns"]
    is_zero = stamped["stamp_ns"] == 0
    is_ahead, is_old = ~is_zero & (ages_ns < 0), ~is_zero & (ages_ns > AGE_NS_MAX)
    stamps = Stamps(
        int(stamped.size), *(int(np.count_nonzero(kind)) for kind in (is_zero, is_ahead, is_old))
    )
    if not stamps.stamps:
        return None, NO_STAMPS if records.size else NO_MESSAGE, stamps
    if stamps.zero == stamps.stamps:
        return None, ZERO_STAMPS, stamps
    if same_host is False:
        return None, OTHER_HOST, stamps
    if stamps.ahead or stamps.old:  # one clock gives all stamps of a publisher
        return None, OTHER_CLOCK, stamps
    return _delays(ages_ns[~is_zero]), "", stamps


def _delays(delays_ns: NDArray[np.int64]) -> Delays:
    ordered_us = np.sort(delays_ns) / 1e3
    p50, p95, p99 = (nearest_rank(ordered_us, share) for share in (0.5, 0.95, 0.99))
    return Delays(p50, p95, p99, float(ordered_us[-1]), int(ordered_us.size))


def _cost(graph: Graph, begin_ns: int, end_ns: int) -> ProbeCost | None:
    """Return the probe's cost between its first and its last report in the window."""
    inside = [u for u in graph.usage if begin_ns <= u["monotonic_ns"] <= end_ns]
    if len(inside) < 2:
        return None
    first, last = inside[0], inside[-1]
    cpu_ns = last["cpu_ns"] - first["cpu_ns"]
    messages = last["records"] - first["records"]
    return ProbeCost(
        cpu_share=cpu_ns / (last["monotonic_ns"] - first["monotonic_ns"]),
        cpu_us_per_message=cpu_ns / 1e3 / messages if messages else None,
        memory_peak_kib=last["rss_peak_kib"],
    )
