"""Compute rate, latency, age and loss of each publisher on each topic in a window."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wattwire.analysis.streams.published import Published, published_in, successors_joined
from wattwire.analysis.streams.recorded import NO_STAMP, Graph, Records
from wattwire.stats.results import TooFew
from wattwire.stats.series.percentiles import percentile
from wattwire.stats.series.streams import (
    SequenceFaults,
    arrivals,
    clock_jumps,
    first_occurrences,
    received_between,
    sequence_faults,
    with_losses,
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
TOO_FEW, LOST = "too_few", "lost"
TRANSIENT_LOCAL = "transient_local"
SHARES = {"p50_us": 0.5, "p95_us": 0.95, "p99_us": 0.99}


@dataclass(frozen=True)
class Delays:
    """Percentiles of the delays of messages, in µs.

    A percentile is None if there are too few messages, and infinite if it falls on lost ones.
    """

    p50_us: float | None
    p95_us: float | None
    p99_us: float | None
    max_us: float
    count: int
    """Messages whose delay is known."""

    def as_json(self) -> dict[str, Any]:
        """Return the fields. Null is the value of a percentile with a reason."""
        fields = asdict(self)
        reasons = {
            name: TOO_FEW if fields[name] is None else LOST
            for name in (*SHARES, "max_us")
            if fields[name] is None or math.isinf(fields[name])
        }
        return {**fields, **dict.fromkeys(reasons), "reasons": reasons}


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
    qos: Mapping[str, Any] | None
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
    publishers: int = 1
    """Publishers of this node that followed one another, as after a restart."""
    unattributed: bool = False
    """Whether the messages tell publishers apart, but not which node sent them."""

    def as_json(self) -> dict[str, Any]:
        delays = {"latency": self.latency, "age": self.age}
        known = {name: value.as_json() for name, value in delays.items() if value is not None}
        return {"kind": "stream", **asdict(self), **known}


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
    subscribed_s: dict[str, float] = field(default_factory=dict)
    """Topic → time (s) in the window at which the probe subscribed to it."""
    printed: frozenset[str] = frozenset()
    """Names of figures that the watched command prints, which no figure of a stream replaces."""
    remedies: Mapping[str, str] = field(default_factory=dict)
    """What to do about a situation, as the table of the probe states it."""


def watched(graph: Graph, records: Records, begin_ns: int, end_ns: int) -> Watched:
    """Return the numbers of the window from `begin_ns` to `end_ns` (monotonic)."""
    first, last = np.searchsorted(records["monotonic_ns"], [begin_ns, end_ns])
    inside = records[first:last]
    jumps = clock_jumps(inside["taken_ns"], inside["monotonic_ns"])
    published = successors_joined(list(published_in(graph, records, begin_ns, end_ns)))
    streams = [_stream(one, graph, jumps, begin_ns, end_ns) for one in published]
    return Watched(
        window_s=(end_ns - begin_ns) / 1e9,
        streams=sorted(streams, key=lambda stream: (stream.topic, stream.node, stream.gid)),
        graph=graph,
        cost=_cost(graph, begin_ns, end_ns),
        jumps=[((at_ns - begin_ns) / 1e9, moved_ns / 1e9) for at_ns, moved_ns in jumps],
        subscribed_s={
            name: (topic["subscribed_monotonic_ns"] - begin_ns) / 1e9
            for name, topic in graph.topics.items()
            if begin_ns < topic.get("subscribed_monotonic_ns", 0) < end_ns
        },
    )


def _is_kept_for_new_readers(published: Published, graph: Graph) -> NDArray[np.bool_]:
    """Return which messages of the window were published before the probe subscribed.

    A publisher with the durability transient_local sends them to each new reader, so their delay
    says nothing about the way of a message. The clock of another host cannot show it.
    """
    fact, records = published.fact, published.inside
    qos = fact.get("qos") or {}
    topic = graph.topics.get(fact.get("topic", ""), {})
    subscribed_ns = topic.get("subscribed_monotonic_ns")
    if (
        subscribed_ns is None
        or fact.get("same_host") is not True
        or qos.get("durability") != TRANSIENT_LOCAL
    ):
        return np.zeros(records.size, dtype=np.bool_)
    # The difference of two readings of the wall clock survives that the clock is set.
    published_ns = records["monotonic_ns"] - (records["taken_ns"] - records["source_ns"])
    is_taken_later = records["monotonic_ns"] >= subscribed_ns
    return (records["source_ns"] > 0) & (published_ns < subscribed_ns) & is_taken_later


def _is_steady(records: Records, jumps: list[tuple[int, int]]) -> NDArray[np.bool_]:
    """Return which messages were not taken shortly after a jump of the clock."""
    is_steady = np.ones(records.size, dtype=np.bool_)
    for jump_ns, _ in jumps:
        after_ns = records["monotonic_ns"] - jump_ns
        is_steady &= (after_ns < 0) | (after_ns > AFTER_JUMP_NS)
    return is_steady


def _is_prompt(records: Records, graph: Graph) -> NDArray[np.bool_]:
    """Return which messages have a delay without the time in which the probe scanned the graph."""
    if not graph.scans:
        return np.ones(records.size, dtype=np.bool_)
    begins_ns, ends_ns = np.array(sorted(graph.scans), dtype=np.int64).T
    at = np.searchsorted(begins_ns, records["source_ns"], side="right") - 1
    is_prompt: NDArray[np.bool_] = (at < 0) | (records["source_ns"] > ends_ns[at])
    return is_prompt


def _stream(
    published: Published, graph: Graph, jumps: list[tuple[int, int]], begin_ns: int, end_ns: int
) -> Stream:
    """Return the numbers of a publisher."""
    fact, inside = published.fact, published.inside
    same_host = fact.get("same_host")
    is_kept = _is_kept_for_new_readers(published, graph)
    is_first, faults, received = np.ones(inside.size, dtype=np.bool_), None, None
    if published.is_numbered and not np.all(is_kept):
        before, after = published.before["sequence"], published.after["sequence"]
        faults = sequence_faults(inside["sequence"], before, after)
        is_first = first_occurrences(np.concatenate([before, inside["sequence"]]))[before.size :]
        if np.any(is_first):
            received = received_between(inside["sequence"][is_first], before, after)
    fresh = inside[is_first & ~is_kept]
    steady = fresh[_is_steady(fresh, jumps)]
    is_prompt = _is_prompt(steady, graph)
    gone_ns = published.gone_ns
    is_gone = gone_ns is not None and gone_ns < end_ns
    last_ns = int(fresh["monotonic_ns"][-1]) if fresh.size else begin_ns
    observed_end_ns = max(gone_ns, last_ns) if is_gone and gone_ns is not None else end_ns
    observed_s = (observed_end_ns - begin_ns) / 1e9
    arrival = arrivals(fresh["monotonic_ns"], observed_s)
    latency, no_latency = _latency(steady[is_prompt], same_host, received)
    age, no_age, stamps = _age(steady, is_prompt, same_host)
    since_last_s = (end_ns - last_ns) / 1e9
    is_silent = arrival.rate_hz and since_last_s > max(
        SILENT_S_MIN, SILENT_INTERVALS / arrival.rate_hz
    )
    return Stream(
        topic=fact.get("topic", ""),
        node=fact.get("node", ""),
        type=fact.get("type", ""),
        gid=fact["gid"],
        qos=fact.get("qos"),
        same_host=same_host,
        messages=int(np.count_nonzero(~is_kept)),
        before=published.messages_before + int(np.count_nonzero(is_kept)),
        rate_hz=arrival.rate_hz,
        interval_sd_ms=None if arrival.interval_sd_s is None else 1e3 * arrival.interval_sd_s,
        bytes_mean=float(np.mean(fresh["bytes"])) if fresh.size else None,
        bytes_per_s=float(np.sum(fresh["bytes"])) / observed_s if arrival.rate_hz else None,
        latency=latency,
        no_latency=no_latency,
        age=age,
        no_age=no_age,
        stamps=stamps,
        faults=faults,
        silent_s=since_last_s if is_silent else None,
        gone=is_gone,
        publishers=published.publishers,
        unattributed=bool(fact.get("mark")),
    )


def _latency(
    records: Records, same_host: bool | None, received: NDArray[np.uint64] | None
) -> tuple[Delays | None, str]:
    """Return the delays from the publication to the take, or the reason why there are none.

    Between the ascending numbers `received`, messages are lost, which is an infinite delay. None
    means that there are no numbers.

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
    if received is None:
        return _delays(delays_ns / 1e3), ""
    delays_us = np.full(received.size, np.nan)  # that of an unused or outside message
    delays_us[np.searchsorted(received, records["sequence"])] = delays_ns / 1e3
    delays_us = with_losses(delays_us, received)
    return _delays(delays_us[~np.isnan(delays_us)]), ""


def _age(
    records: Records, is_prompt: NDArray[np.bool_], same_host: bool | None
) -> tuple[Delays | None, str, Stamps]:
    """Return the delays from the stamps to the take, the reason for none, and the stamps.

    Delays are those of the messages that the probe took at once (`is_prompt`).
    """
    is_stamped = records["stamp_ns"] != NO_STAMP
    stamped, is_prompt = records[is_stamped], is_prompt[is_stamped]
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
    is_used = ~is_zero & is_prompt
    if not np.any(is_used):
        return None, NO_MESSAGE, stamps
    return _delays(ages_ns[is_used] / 1e3), "", stamps


def _delays(delays_us: NDArray[np.float64]) -> Delays:
    """Return percentiles of a series in time order, in which lost messages are infinite."""
    results = {name: percentile(delays_us, share) for name, share in SHARES.items()}
    return Delays(
        **{n: None if isinstance(p, TooFew) else p.interval.estimate for n, p in results.items()},
        max_us=float(delays_us.max()),
        count=int(np.count_nonzero(np.isfinite(delays_us))),
    )


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
