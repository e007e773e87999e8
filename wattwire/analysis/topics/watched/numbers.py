"""Compute the topics that a probe watched, as means over the windows, and their costs by process.

The CPU time of a process is known, that of one of its topics is not. So the CPU time per message of
a topic is exact for a process with one topic, and otherwise an upper bound: the whole CPU time of
the process over the messages of this topic.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.streams.numbers import LOST, SHARES
from wattwire.analysis.topics.processes.executed import Value, labels_of, mean_of
from wattwire.model.variants import FACTOR

PUBLISHES, RECEIVES = "publishes", "receives"
GID_PART_MIN = 4
"""Least number of digits of a gid that distinguish publishers."""
NUMBER = re.compile(r"(?<![\w/])\d[\d.,]*(?: (?:ns|µs|ms|s|min)\b)?")
"""A number in a sentence, with a unit of time; not a part of a name."""


@dataclass(frozen=True)
class WatchedTopic:
    """The messages of a publisher on a topic, as means over the windows; None if unknown.

    `publisher` is its `node`, with a part of its gid if the node has several on the topic. Such a
    gid is of one window only. `is_lost` names the percentiles that fall on lost messages, which are
    infinitely late. `no_latency` is the reason for a missing latency. `process` is "" if it is
    unknown.
    """

    variant: str
    topic: str
    node: str
    publisher: str
    process: str
    type: str
    reliability: str
    windows: int
    messages: float
    rate_hz: Value
    interval_sd_ms: Value
    bytes_mean: Value
    bytes_per_s: Value
    p50_us: Value
    p95_us: Value
    p99_us: Value
    age_p50_us: Value
    lost: Value
    reordered: Value
    is_lost: tuple[str, ...] = ()
    no_latency: str = ""


@dataclass(frozen=True)
class MessageCost:
    """The CPU time (µs) per message of a process.

    `topic` and `way` (PUBLISHES, RECEIVES) name the messages; both are "" in the row of all
    messages of the process on `topics` topics. `bound_us` is an upper bound, where the CPU time
    cannot be divided among topics.
    """

    variant: str
    process: str
    topic: str
    way: str
    topics: int
    messages: float
    rate_hz: Value
    cpu_us: Value = None
    bound_us: Value = None


@dataclass(frozen=True)
class Unread:
    """A topic that the probe could not read."""

    topic: str
    type: str
    problem: str


@dataclass(frozen=True)
class Mismatch:
    """A subscription whose QoS can never match a publisher's."""

    topic: str
    sender: str
    receiver: str
    reason: str


@dataclass(frozen=True)
class Remark:
    """A sentence on what is unusual in `windows` windows, with the numbers of the first of them."""

    text: str
    windows: int


@dataclass(frozen=True)
class ProbeCosts:
    """The costs of the probe as means over the windows. Memory is the highest, in MiB."""

    cpu_percent: float
    cpu_us_per_message: float | None
    memory_mib: float


@dataclass(frozen=True)
class WatchedTopics:
    """What a probe watched in the windows of a campaign; empty without a probe.

    `unknown` are the nodes and topics whose process is not known, or is not measured, and
    `repeated` the readers that had several subscriptions. `remarks` are the sentences on what is
    unusual in a window.
    """

    windows: int = 0
    messages: int = 0
    topics: tuple[WatchedTopic, ...] = ()
    costs: tuple[MessageCost, ...] = ()
    unknown: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()
    unread: tuple[Unread, ...] = ()
    excluded: tuple[str, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    probe: ProbeCosts | None = None
    has_processes: bool = False
    has_unnumbered: bool = False
    """Whether messages of a topic have no numbers, so that lost ones are unknown."""

    @property
    def has_bounds(self) -> bool:
        """Whether a cost is an upper bound."""
        return any(cost.bound_us is not None for cost in self.costs)


@dataclass(frozen=True)
class Window:
    """The document of a run of `exec`, and pid → label and CPU time (s) of its processes."""

    variant: str
    run: Mapping[str, Any]
    window_s: float
    labels: Mapping[int, str]
    cpu_s: Mapping[int, float]

    @property
    def document(self) -> Mapping[str, Any]:
        """What the probe watched."""
        topics: Mapping[str, Any] = self.run["topics"]
        return topics


def watched_topics(evidence: Evidence) -> WatchedTopics:
    """Return the topics that a probe watched; empty without one."""
    request = None if evidence.imported else evidence.study.request
    if request is None or not request.probe:
        return WatchedTopics()
    windows = [window for window in windows_of(evidence) if "topics" in window.run]
    documents = [window.document for window in windows]
    return WatchedTopics(
        windows=len(windows),
        messages=sum(s["messages"] for d in documents for s in d["streams"]),
        topics=tuple(_topics(windows)),
        costs=tuple(_costs(windows)),
        unknown=tuple(_unknown(windows)),
        repeated=tuple(dict.fromkeys(_repeated(documents))),
        remarks=tuple(_remarks(documents)),
        unread=tuple(dict.fromkeys(Unread(**row) for d in documents for row in d["unread"])),
        excluded=tuple(dict.fromkeys(name for d in documents for name in d["excluded"])),
        mismatches=tuple(
            dict.fromkeys(
                Mismatch(m["topic"], m["sending_node"], m["receiving_node"],
                         m["reason"].rstrip("; "))
                for document in documents for m in document["mismatches"]
            )
        ),
        probe=_probe([d["cost"] for d in documents if d["cost"] is not None]),
        has_processes=not request.is_only_probe,
        has_unnumbered=any(
            s["messages"] and s["faults"] is None for d in documents for s in d["streams"]
        ),
    )  # fmt: skip


def windows_of(evidence: Evidence) -> list[Window]:
    """Return the valid runs of a campaign of `exec`."""
    processes = evidence.reader.processes()  # type: ignore[attr-defined]
    if processes is None or processes.is_empty():
        processes = pl.DataFrame()
    else:
        processes = processes.with_columns(labels_of(processes))
    column, windows = f"factor.{FACTOR}", []
    for row in evidence.usable.to_dicts():
        own = processes
        if len(own):
            own = own.filter(pl.col("run") == row["run"], pl.col("attempt") == row["attempt"])
        known = [process for process in own.to_dicts() if process.get("pid") is not None]
        windows.append(
            Window(
                str(row.get(column) or ""),
                evidence.runs.get(row["run"], {}),
                float(row.get("window_s") or 0.0),
                {p["pid"]: p["label"] for p in known},
                {p["pid"]: p["cpu_s"] for p in known if p["cpu_s"] is not None},
            )
        )
    return windows


Ends = Sequence[tuple[Window, Mapping[str, Any]]]
"""Streams or readers, each with its window."""


def _grouped(
    windows: Iterable[Window], ends: str, key: Callable[[Window, Mapping[str, Any]], Any]
) -> dict[Any, Ends]:
    """Return the streams or readers of all windows by their keys, without those of key None."""
    groups: dict[Any, list[tuple[Window, Mapping[str, Any]]]] = {}
    for window in windows:
        for end in window.document[ends]:
            if (name := key(window, end)) is not None:
                groups.setdefault(name, []).append((window, end))
    return {name: groups[name] for name in sorted(groups)}


def _topics(windows: Sequence[Window]) -> Iterator[WatchedTopic]:
    parts = {id(window): _distinct_parts(window.document["streams"]) for window in windows}

    def key(window: Window, stream: Mapping[str, Any]) -> tuple[str, str, str, str] | None:
        node, part = (
            stream["node"] or stream["gid"],
            parts[id(window)].get((stream["topic"], stream["gid"])),
        )
        publisher = f"{node} ({part})" if part else node
        return (window.variant, stream["topic"], node, publisher) if stream["messages"] else None

    for (variant, topic, node, publisher), ends in _grouped(windows, "streams", key).items():
        streams = [stream for _, stream in ends]
        processes = {window.labels.get(stream["pid"], "") for window, stream in ends}
        last = streams[-1]
        latencies = [s["latency"] for s in streams if s["latency"] is not None]
        ages = [s["age"] for s in streams if s["age"] is not None]
        faults = [s["faults"] for s in streams if s["faults"] is not None]
        reasons = [latency["reasons"] for latency in latencies]
        lost = {n for r in reasons for n, why in r.items() if n in SHARES and why == LOST}
        yield WatchedTopic(
            variant=variant,
            topic=topic,
            node=node,
            publisher=publisher,
            process=processes.pop() if len(processes) == 1 else "",
            type=last["type"],
            reliability=str((last["qos"] or {}).get("reliability", "")),
            windows=len(streams),
            messages=sum(s["messages"] for s in streams) / len(streams),
            **{n: _mean(streams, n)
               for n in ("rate_hz", "interval_sd_ms", "bytes_mean", "bytes_per_s")},
            **{n: None if n in lost else _mean(latencies, n)
               for n in SHARES},
            age_p50_us=_mean(ages, "p50_us"),
            lost=_mean(faults, "lost"),
            reordered=_mean(faults, "reordered"),
            is_lost=tuple(sorted(lost)),
            no_latency="" if latencies else last["no_latency"],
        )  # fmt: skip


def _distinct_parts(streams: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return topic and gid → what distinguishes the gid, where a node has several on the topic."""
    groups: dict[tuple[str, str], list[str]] = {}
    for stream in streams:
        if stream["messages"] and stream["node"]:
            groups.setdefault((stream["topic"], stream["node"]), []).append(stream["gid"])
    parts: dict[tuple[str, str], str] = {}
    for (topic, _), gids in groups.items():
        begin = len(os.path.commonprefix(gids))
        lengths = range(GID_PART_MIN, max(map(len, gids)) + 1)
        own = ({(topic, gid): gid[begin : begin + length] for gid in gids} for length in lengths)
        if len(gids) > 1:
            parts |= next((p for p in own if len({*p.values()}) == len(gids)), {})
    return parts


def _repeated(documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the readers that had several subscriptions in a window."""
    for document in documents:
        for reader in document["readers"]:
            if reader["subscriptions"] > 1:
                yield f"{reader['topic']} ({reader['node']})"


def _remarks(documents: Sequence[Mapping[str, Any]]) -> Iterator[Remark]:
    """Yield the sentences of all windows. Sentences that differ only in numbers are one."""
    kinds: dict[str, list[str]] = {}
    for document in documents:
        for text in document["remarks"]:
            kinds.setdefault(NUMBER.sub("#", text), []).append(text)
    yield from (Remark(texts[0], len(texts)) for texts in kinds.values())


def _mean(rows: Iterable[Mapping[str, Any]], key: str) -> Value:
    return mean_of([float(row[key]) for row in rows if row[key] is not None])


def _costs(windows: Sequence[Window]) -> Iterator[MessageCost]:
    """Yield a row per process and topic, each process beginning with one of all its messages."""
    by_process: dict[tuple[str, str], dict[tuple[str, str], Ends]] = {}
    for table, way in (("streams", PUBLISHES), ("readers", RECEIVES)):

        def key(
            window: Window, end: Mapping[str, Any], way: str = way
        ) -> tuple[str, str, str, str] | None:
            label = window.labels.get(end["pid"])
            is_known = label is not None and end["pid"] in window.cpu_s and end["published"]
            return (window.variant, str(label), way, end["topic"]) if is_known else None

        for (variant, label, *named), ends in _grouped(windows, table, key).items():
            by_process.setdefault((variant, label), {})[named[0], named[1]] = ends
    for (variant, label), ways in sorted(by_process.items()):
        topics = len({topic for _, topic in ways})
        whole = _cost(variant, label, "", "", [e for ends in ways.values() for e in ends], topics)
        if len(ways) > 1:
            yield whole
        for (way, topic), ends in ways.items():
            cost = _cost(variant, label, topic, way, ends, topics)
            yield cost if len(ways) > 1 else replace(whole, topic=topic, way=way)


def _cost(variant: str, label: str, topic: str, way: str, ends: Ends, topics: int) -> MessageCost:
    """Return the CPU time over these messages, which bounds it if they are of one topic of many."""
    by_window: dict[int, tuple[Window, int, set[int]]] = {}
    for window, end in ends:
        _, messages, pids = by_window.get(id(window), (window, 0, set()))
        by_window[id(window)] = (window, messages + end["published"], {*pids, end["pid"]})
    costs_us = [
        1e6 * sum(window.cpu_s[pid] for pid in pids) / messages
        for window, messages, pids in by_window.values()
    ]
    rates_hz = [m / window.document["window_s"] for window, m, _ in by_window.values()]
    mean_us = mean_of(costs_us)
    return MessageCost(
        variant,
        label,
        topic,
        way,
        topics,
        sum(messages for _, messages, _ in by_window.values()) / len(by_window),
        mean_of(rates_hz),
        None if topic else mean_us,
        mean_us if topic else None,
    )


def _unknown(windows: Sequence[Window]) -> Iterator[str]:
    """Yield the publishers and subscriptions without a measured process."""

    def key(window: Window, end: Mapping[str, Any]) -> tuple[str, str] | None:
        is_known = end["pid"] in window.labels or not end["published"]
        return None if is_known else (end["topic"], end["node"] or "an unknown node")

    names = {*_grouped(windows, "streams", key), *_grouped(windows, "readers", key)}
    yield from (f"{topic} ({node})" for topic, node in sorted(names))


def _probe(costs: Sequence[Mapping[str, Any]]) -> ProbeCosts | None:
    if not costs:
        return None
    per_message = [c["cpu_us_per_message"] for c in costs if c["cpu_us_per_message"] is not None]
    return ProbeCosts(
        100 * sum(cost["cpu_share"] for cost in costs) / len(costs),
        sum(per_message) / len(per_message) if per_message else None,
        max(cost["memory_peak_kib"] for cost in costs) / 1024,
    )
