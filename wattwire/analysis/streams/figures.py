"""Name the figures of streams as the responses of a run, so that campaigns can be compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from wattwire.analysis.streams.numbers import Stream, Watched


def figures_of(result: Watched) -> dict[str, float]:
    """Return name → value of the figures of all streams. The end of a name gives its unit.

    A name begins with the topic. If several publishers share a topic, the node follows, and if they
    share both, a number.
    """
    figures: dict[str, float] = {}
    for name, stream in zip(_names(result.streams), result.streams, strict=True):
        for figure, value in _figures(stream):
            if value is not None:
                figures[f"{name}_{figure}"] = float(value)
    return figures


def _names(streams: list[Stream]) -> Iterator[str]:
    topics = Counter(_identifier(stream.topic) for stream in streams)
    used: Counter[str] = Counter()
    for stream in streams:
        name = _identifier(stream.topic)
        if topics[name] > 1:
            name = f"{name}_of_{_identifier(stream.node)}"
        used[name] += 1
        yield name if used[name] == 1 else f"{name}_{used[name]}"


def _identifier(name: str) -> str:
    words = re.sub(r"\W+", "_", name).strip("_") or "unnamed"
    return words if words.isidentifier() else f"_{words}"


def _figures(stream: Stream) -> Iterator[tuple[str, float | None]]:
    yield "rate_hz", stream.rate_hz
    if stream.latency is not None:
        yield "latency_p50_us", stream.latency.p50_us
        yield "latency_p95_us", stream.latency.p95_us
        yield "latency_p99_us", stream.latency.p99_us
    if stream.age is not None:
        yield "age_p50_us", stream.age.p50_us
    if stream.faults is not None:
        yield "lost", stream.faults.lost
