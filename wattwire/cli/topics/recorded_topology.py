"""Write the topology of a graph that `topics` or `exec --topics` watched."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wattwire.catalog.bags import RECORDER, REMARKS, known_qos
from wattwire.model.errors import UsageError
from wattwire.model.flows import PAYLOAD_BYTES, RATE_HZ, plain_name
from wattwire.model.verdict import Verdict
from wattwire.model.words import listed
from wattwire.store import Campaign

JOURNAL = "journal.sqlite"
LINES = ".jsonl"
"""Ending of a file of `wattwire topics --json`."""
NO_RECEIVER = "no subscription was seen; name the node that receives it"
KEYS = {
    "stream": ("topic", "node", "type", "messages", "rate_hz", "bytes_mean", "qos", "window_s"),
    "reader": ("topic", "node"),
}
"""Kind of a line → the keys that it needs."""
Windows = Sequence[tuple[float, Sequence[Mapping[str, Any]]]]
"""Length (s) and streams of each window."""


def is_watched(path: Path) -> bool:
    """Return whether a path has the form of a campaign, or of the lines of `topics --json`."""
    return (path / JOURNAL).exists() or path.suffix == LINES


def watched_topology(path: Path) -> dict[str, Any]:
    """Return the table of the topology that a probe watched; its flows can have REMARKS.

    Sizes are means over the messages. Rates are means over the windows; those of publishers of one
    node add up. Raises UsageError for a source without messages, and for one with variants.
    """
    windows, readers = _of_lines(path) if path.is_file() else _of_campaign(path)
    flows = list(_flows(windows, _receivers(readers)))
    if not flows:
        raise UsageError(
            f"{path}: found no message of a topic; allowed: a campaign of `wattwire topics` or "
            f"`wattwire exec --topics`, or a file NAME{LINES} of `wattwire topics --json`, in "
            "which nodes published"
        )
    names = dict.fromkeys(name for flow in flows for name in (flow["from"], *flow["to"]))
    return {"node": [{"name": name} for name in names], "flow": flows}


def _of_campaign(path: Path) -> tuple[Windows, list[Mapping[str, Any]]]:
    campaign = Campaign(path)
    try:
        if variants := campaign.study.variants:
            raise UsageError(
                f"{path}: found the variants {listed(list(variants))}, which can have different "
                "graphs; allowed: a campaign of one. Repeat `wattwire exec --topics` with the "
                "command of one variant."
            )
        done = [a for a in campaign.journal.attempts() if a.state == "done" and a.folder]
        runs = [campaign.run(str(attempt.folder)) for attempt in done]
    finally:
        campaign.close()
    watched = [
        run["topics"] for run in runs
        if "topics" in run and run.get("verdict") != Verdict.FAILED.value
    ]  # fmt: skip
    windows = [(document["window_s"], document["streams"]) for document in watched]
    return windows, [reader for document in watched for reader in document["readers"]]


def _of_lines(path: Path) -> tuple[Windows, list[Mapping[str, Any]]]:
    """Return the only window of a file, as --live prints others, and its readers."""
    streams: list[Mapping[str, Any]] = []
    readers: list[Mapping[str, Any]] = []
    for number, data in enumerate(path.read_bytes().splitlines(), 1):
        line = data.decode(errors="replace")
        allowed = "allowed: an object with a kind, as `wattwire topics --json` prints"
        try:
            fact = json.loads(line)
            kind = fact["kind"]
        except (ValueError, TypeError, KeyError):
            raise UsageError(f"{path}: line {number}: found {line[:60]!r}; {allowed}") from None
        lacking = [key for key in KEYS.get(kind, ()) if key not in fact]
        if lacking:
            raise UsageError(
                f"{path}: line {number}: found a {kind} without {listed(lacking)}; {allowed}"
            )
        if kind == "stream":
            streams.append(fact)
        elif kind == "reader":
            readers.append(fact)
    window_s = streams[-1]["window_s"] if streams else 0.0
    return [(window_s, [s for s in streams if s["window_s"] == window_s])], readers


def _receivers(readers: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the names of the nodes that subscribe to each topic."""
    receivers: dict[str, list[str]] = {}
    for reader in readers:
        names, name = receivers.setdefault(reader["topic"], []), plain_name(reader["node"])
        if name not in names:
            names.append(name)
    return receivers


def _flows(windows: Windows, receivers: Mapping[str, list[str]]) -> Iterator[dict[str, Any]]:
    """Yield a flow per topic and node that published on it in a window."""
    groups: dict[tuple[str, str], list[tuple[float, Mapping[str, Any]]]] = {}
    for window_s, streams in windows:
        for stream in streams:
            if stream["messages"] and stream["bytes_mean"] is not None:
                sender = plain_name(stream["node"] or stream["topic"])
                groups.setdefault((stream["topic"], sender), []).append((window_s, stream))
    for (topic, sender), of_windows in sorted(groups.items()):
        remarks: dict[str, str] = {}
        messages = sum(stream["messages"] for _, stream in of_windows)
        rate_hz = sum(map(_rate_hz, of_windows)) / len(windows)
        total_s = sum(window_s for window_s, _ in windows)
        if rate_hz < RATE_HZ[0]:
            remarks["rate_hz"] = f"{messages} messages in {total_s:.3g} s; the least rate"
        sizes = sum(s["messages"] * s["bytes_mean"] for _, s in of_windows) / messages
        size = min(max(round(sizes), PAYLOAD_BYTES[0]), PAYLOAD_BYTES[1])
        if size != round(sizes):
            remarks["bytes"] = f"{round(sizes)} bytes, which no flow can have"
        if not receivers.get(topic):
            remarks["to"] = NO_RECEIVER
        last = of_windows[-1][1]
        flow: dict[str, Any] = {
            "topic": topic,
            "from": sender,
            "to": receivers.get(topic) or [RECORDER],
            "type": last["type"],
            "bytes": size,
            "rate_hz": float(f"{max(rate_hz, RATE_HZ[0]):.6g}"),
        }
        if qos := known_qos(last["qos"] or {}):
            flow["qos"] = qos
        yield {**flow, REMARKS: remarks} if remarks else flow


def _rate_hz(of_window: tuple[float, Mapping[str, Any]]) -> float:
    """Return the rate of a stream in a window; without a known one, that of its messages."""
    window_s, stream = of_window
    known_hz = stream["rate_hz"]
    return float(stream["messages"] / window_s if known_hz is None else known_hz)
