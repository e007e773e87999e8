"""Write the sentences below the table: what was not read, what is unusual, and what is unknown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from wattwire.analysis.streams.numbers import (
    AHEAD,
    OTHER_CLOCK,
    OTHER_HOST,
    SHARES,
    ZERO_STAMPS,
    Stream,
    Watched,
)
from wattwire.model.quantiles import carried_size
from wattwire.model.words import count, duration, listed, listed_first, number, percent, plural

NAMES_MAX = 8
NEVER = "∞"
"""Percentile that falls on lost messages."""
Remedies = Mapping[str, str]
"""What to do about a situation, as the table of the probe states it."""


def remarks(result: Watched, remedies: Remedies) -> Iterator[str]:
    """Yield one sentence per situation."""
    yield from _unread(result, remedies)
    for fact in result.graph.mismatches:
        yield (
            f"{fact['topic']}: {fact['receiving_node']} never receives messages of "
            f"{fact['sending_node']}: {fact['reason'].rstrip('; ')}."
        )
    yield from unusual(result, remedies)
    yield from _cost(result)


def unusual(result: Watched, remedies: Remedies) -> Iterator[str]:
    """Yield the sentences on what was read: what is unusual, and what is unknown."""
    yield from _topics(result, remedies)
    yield from _graph(result)
    for stream in result.streams:
        yield from _stream(stream, result, remedies)
    yield from _percentiles(result)
    yield from _clocks(result)


def _unread(result: Watched, remedies: Remedies) -> Iterator[str]:
    graph = result.graph
    excluded = graph.scan.get("excluded", [])
    if excluded:
        yield f"Not read, because excluded: {listed_first(sorted(excluded), NAMES_MAX)}."
    for topic in graph.topics.values():
        name = topic["topic"]
        if topic["problem"]:
            remedy = f" {remedies['no_type']}" if topic.get("cause", "type") == "type" else ""
            yield f"{name} ({topic['type']}) is not read: {topic['problem'].rstrip('.')}.{remedy}"


def _topics(result: Watched, remedies: Remedies) -> Iterator[str]:
    for topic in result.graph.topics.values():
        name = topic["topic"]
        if topic["problem"]:
            pass  # it is not read
        elif topic["publishers"] > topic["readable"] > 0:
            unreadable = topic["publishers"] - topic["readable"]
            yield (
                f"{name}: {count(unreadable)} of its {count(topic['publishers'])} publishers have "
                f"another type than {topic['type']}, so they are not read."
            )
        elif topic.get("matched", 0) < topic["readable"]:
            yield (
                f"{name}: the probe matches {count(topic['matched'])} of its "
                f"{count(topic['readable'])} publishers. {remedies['no_match']}"
            )
        elif topic["publishers"] > topic["readable"]:
            yield f"{name}: publishers that are not read: {count(topic['publishers'])}."
        if topic.get("errors"):
            yield (
                f"{name}: {plural(topic['errors'], 'failure')} to read it, the last one: "
                f"{topic['last_error']}. Messages may be missing."
            )
        if topic["publishers"] and name in result.subscribed_s:
            again = " again, because its publishers changed," if topic.get("resubscribed") else ""
            yield (
                f"{name}: the probe subscribed{again} {duration(result.subscribed_s[name])} after "
                "the begin of the window."
            )
    silent = sorted(t["topic"] for t in result.graph.topics.values() if not t["publishers"])
    if silent:
        yield f"Without a publisher: {listed_first(silent, NAMES_MAX)}."


def _graph(result: Watched) -> Iterator[str]:
    graph = result.graph
    for name, number_of_nodes in graph.nodes.get("repeated", {}).items():
        yield (
            f"{number_of_nodes} nodes have the name {name}. Each of their publishers has a row; "
            "give the nodes different names to distinguish them."
        )
    publishers = Counter(stream.topic for stream in result.streams)
    unattributed = {stream.topic for stream in result.streams if stream.unattributed}
    for topic, number_of_publishers in publishers.items():
        if topic in unattributed:
            yield (
                f"{topic} has several publishers. This middleware does not tell which node sent a "
                "message, so rows without a node have the messages of unknown ones."
            )
        elif number_of_publishers > 1:
            yield f"{topic} has {number_of_publishers} publishers, each with its own row."


def _stream(stream: Stream, result: Watched, remedies: Remedies) -> Iterator[str]:
    name = f"{stream.topic} of {stream.node or stream.gid}"
    window = duration(result.window_s)
    if not stream.messages:
        before = f", but {plural(stream.before, 'message')} from before it" if stream.before else ""
        yield f"{name}: no message of the window of {window}{before}."
    elif stream.gone:
        yield f"{name}: the publisher ended in the window; its figures are of the time until then."
    elif stream.silent_s is not None:
        yield (
            f"{name}: no message in the last {duration(stream.silent_s)} of the window; its "
            "publisher may have ended, or had nothing to publish."
        )
    if stream.publishers > 1:
        yield (
            f"{name}: {count(stream.publishers)} publishers followed one another, as after a "
            "restart. The row has the messages of all."
        )
    yield from _weaker_reading(name, stream, result)
    if stream.faults is None and stream.messages:
        yield f"{name}: {remedies['unsequenced']}, so losses are unknown."
    if stream.faults is not None and stream.faults.repeated:
        yield f"{name}: {plural(stream.faults.repeated, 'message')} arrived more than once."
    if stream.no_latency == OTHER_HOST:
        yield (
            f"{name}: the publisher is on another host, whose clock is not related to this one, so "
            "its latency is not comparable."
        )
    if stream.no_latency == AHEAD:
        yield (
            f"{name}: messages were published after their arrival, so the times are from another "
            "clock, and the latency is unknown."
        )
    if stream.messages and stream.same_host is None and stream.latency is not None:
        yield (
            f"{name}: the host of the publisher is unknown. The latency is only valid if it is "
            "this host."
        )
    yield from _stamps(name, stream)


def _weaker_reading(name: str, stream: Stream, result: Watched) -> Iterator[str]:
    read_with = result.graph.topics.get(stream.topic, {}).get("read_with") or {}
    offered, requested = (qos.get("reliability") for qos in (stream.qos or {}, read_with))
    if stream.messages and (offered, requested) == ("reliable", "best_effort"):
        yield (
            f"{name}: the publisher is reliable, but another one of this topic is not, so the "
            "probe reads with best effort. It may lose messages that reliable subscriptions get."
        )


def _percentiles(result: Watched) -> Iterator[str]:
    """Say why percentiles are missing, or infinite."""
    delays = [s.latency for s in result.streams if s.latency is not None]
    missing = [n for n in SHARES if any(getattr(delay, n) is None for delay in delays)]
    if missing:
        needed = [f"{carried_size(SHARES[n])} for {n.removesuffix('_us')}" for n in missing]
        yield (
            f"A percentile needs enough independent messages: {listed(needed)}. If there are "
            "fewer, it is missing; a longer --for has more."
        )
    if any(math.isinf(delay.max_us) for delay in delays):
        yield (
            "A lost message is infinitely late, so the greatest latency of a publisher with losses "
            f"is {NEVER}, and so is a percentile that falls on lost messages."
        )


def _stamps(name: str, stream: Stream) -> Iterator[str]:
    stamps = stream.stamps
    if stamps.zero:
        yield f"{name}: {count(stamps.zero)} of {plural(stamps.stamps, 'stamp')} are zero."
    if stream.no_age == OTHER_CLOCK:
        kinds = {"ahead of this host's clock": stamps.ahead, "more than a day old": stamps.old}
        unusable = " and ".join(f"{count(n)} {kind}" for kind, n in kinds.items() if n)
        yield (
            f"{name}: of {plural(stamps.stamps, 'stamp')} in the headers, {unusable}. They are not "
            "from this wall clock (simulated time, a recording, or another host's clock), so their "
            "age is unknown."
        )
    elif stream.no_age == ZERO_STAMPS:
        yield f"{name}: its publisher sets no stamps, so their age is unknown."


def _clocks(result: Watched) -> Iterator[str]:
    for at_s, moved_s in result.jumps:
        yield (
            f"The wall clock was set by {number(1e3 * moved_s)} ms, {duration(at_s)} after the "
            "begin. Latencies of the second after it are not used."
        )


def _cost(result: Watched) -> Iterator[str]:
    cost = result.cost
    further = (
        "The probe is one more reader of each topic: the publishers also send to it, in shared "
        "memory or over the network, which the probe cannot distinguish."
    )
    if cost is None:
        yield f"The window was too short to measure the cost of the probe. {further}"
        return
    per_message = (
        ""
        if cost.cpu_us_per_message is None
        else f", {number(cost.cpu_us_per_message)} µs of CPU time per message"
    )
    yield (
        f"The probe used {percent(cost.cpu_share)} of a core{per_message}, and up to "
        f"{number(cost.memory_peak_kib / 1024)} MiB of memory. {further}"
    )
