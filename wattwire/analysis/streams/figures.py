"""Name the figures of streams as the responses of a run, so that campaigns can be compared."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from wattwire.analysis.streams.numbers import Stream, Watched
from wattwire.model.words import count, listed

TOPIC_FIGURES = tuple(
    "rate_hz latency_p50_us latency_p95_us latency_p99_us age_p50_us lost".split()
)
CPU_FIGURE = "cpu_per_message_us"
"""Ends of the names of figures of topics, and of the figure of a process."""
ENDS = tuple(f"_{figure}" for figure in (*TOPIC_FIGURES, CPU_FIGURE))
HOP_FIGURES = ("hop_p50_us",)
PATH_FIGURES = ("path_p50_us", "path_p95_us")
LAYER_ENDS = tuple(f"_{figure}" for figure in (*HOP_FIGURES, *PATH_FIGURES))
"""Ends of the names of figures that recorded layers give: of topics, and of paths of messages."""


def figures_of(result: Watched) -> tuple[dict[str, float], list[str]]:
    """Return name → value of the figures of all streams, and notes on what has none.

    The end of a name gives the unit. A name begins with the topic. If several nodes publish on a
    topic, the node follows, so that no figure changes to another node without a word. Publishers
    without a name of their own have no figures, because the next run could exchange them.
    """
    streams = [stream for stream in result.streams if stream.messages]
    names = list(_names(streams))
    uses = Counter(names)
    figures: dict[str, float] = {}
    notes = [
        f"{topic} has several publishing nodes, so the names of its figures contain the node"
        for topic in dict.fromkeys(stream.topic for stream in streams)
        if len({stream.node for stream in streams if stream.topic == topic}) > 1
    ]
    for name, stream in zip(names, streams, strict=True):
        if uses[name] == 1:
            own = {f"{name}_{figure}": value for figure, value in _figures(stream)}
            known = {key: float(value) for key, value in own.items() if value is not None}
            printed = [key for key in known if key in result.printed]
            known = {key: known[key] for key in known if key not in printed}
            if printed:
                notes.append(
                    f"{listed(printed)}: the value that the command printed is kept, so the figure "
                    "of the topic with this name is not stored. Give the printed one another name."
                )
            infinite = [key for key, value in known.items() if math.isinf(value)]
            figures |= {key: known[key] for key in known if key not in infinite}
            if infinite:
                notes.append(
                    f"{listed(infinite)}: not stored, because they fall on lost messages, which "
                    "are infinitely late"
                )
    for name, number in uses.items():
        if number > 1:
            pairs = zip(streams, names, strict=True)
            topics = sorted({stream.topic for stream, used in pairs if used == name})
            notes.append(
                f"{listed(topics)}: {count(number)} publishers share the name {name}, so no "
                "figures of them are stored. Give the nodes different names."
            )
    return figures, notes


def _names(streams: list[Stream]) -> Iterator[str]:
    """Yield the first part of the figures' names, per stream."""
    nodes = {(stream.topic, stream.node) for stream in streams}
    nodes_of_topic = Counter(topic for topic, _ in nodes)
    for stream in streams:
        name = identifier(stream.topic)
        several = nodes_of_topic[stream.topic] > 1
        yield f"{name}_of_{identifier(stream.node)}" if several else name


def identifier(name: str) -> str:
    """Return the name of a topic, a node or a process as a part of the name of a figure."""
    words = re.sub(r"\W+", "_", name).strip("_") or "unnamed"
    return words if words.isidentifier() else f"_{words}"


def _figures(stream: Stream) -> Iterator[tuple[str, float | None]]:
    """Yield the figures of a stream in the order of TOPIC_FIGURES."""
    latency, age, faults = stream.latency, stream.age, stream.faults
    values = (
        stream.rate_hz,
        *(getattr(latency, name, None) for name in ("p50_us", "p95_us", "p99_us")),
        None if age is None else age.p50_us,
        None if faults is None else faults.lost,
    )
    yield from zip(TOPIC_FIGURES, values, strict=True)
