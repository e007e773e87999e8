"""Print the layers of messages and the paths through the graph, which `exec --layers` recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from wattwire.analysis.topics.layers.numbers import GraphPath, Hop, Layers
from wattwire.analysis.topics.processes.executed import Value
from wattwire.cli import wrap
from wattwire.model.words import MISSING, mean_count, number
from wattwire.report.topic_page import Sentences
from wattwire.stats import Interval

SENTENCES = Sentences("layers")
PATHS_MAX = 5
HOPS_MAX = 6
"""Maximum number of topics in the table of layers, which has a column for each."""


def lines(layers: Layers, width: int) -> Iterator[str]:
    """Yield a table of the topics, one of their layers, the longest paths, and sentences."""
    if layers.hops:
        yield ""
        yield from wrap.table(_topics(layers.hops), "<<" + ">" * 6, width, indent="")
        yield ""
        hops = layers.hops[:HOPS_MAX]
        yield from wrap.table(_layers(layers, hops), "<" + ">" * len(hops), width, indent="")
        yield from _left_out(len(layers.hops) - HOPS_MAX, "topic", width)
        if layers.paths:
            yield ""
        for path in layers.paths[:PATHS_MAX]:
            yield wrap.wrapped(_path(path), width, hanging="  ")
        yield from _left_out(len(layers.paths) - PATHS_MAX, "path", width)
        if layers.paths_left_out:
            yield wrap.wrapped(SENTENCES.paths_left_out(layers), width, hanging="")
    for sentence in sentences(layers):
        yield wrap.wrapped(sentence, width, hanging="")


def _left_out(count: int, rows: str, width: int) -> Iterator[str]:
    if count > 0:
        yield wrap.wrapped(SENTENCES.left_out(count, rows), width, hanging="  ")


def sentences(layers: Layers) -> Iterator[str]:
    """Yield the sentences on counts and on what is missing."""
    if layers.hops:
        yield SENTENCES.counts(layers)
        yield SENTENCES.explained()
    elif not layers.invalid:
        yield SENTENCES.nothing(layers)
    for reason in layers.invalid:
        yield SENTENCES.invalid(reason)
    for absence in layers.absent:
        yield SENTENCES.absent(absence)
    if layers.not_taken:
        yield SENTENCES.not_taken(layers)
    if layers.early:
        yield SENTENCES.early(layers)
    if layers.outside:
        yield SENTENCES.outside(layers)
    if layers.unheard:
        yield SENTENCES.unheard(layers)
    if layers.is_recorded:
        yield SENTENCES.loaded()


def as_json(layers: Layers) -> dict[str, Any]:
    """Return the rows of the topics and the paths as JSON values."""
    names = (
        "runs", "deliveries", "unmarked", "not_taken", "early", "outside", "unstamped", "processes",
        "paths_left_out",
    )  # fmt: skip
    return {
        **{name: getattr(layers, name) for name in names},
        "invalid": list(layers.invalid),
        "unheard": list(layers.unheard),
        "untaken": list(layers.untaken),
        "absent": {absence.point: absence.reason for absence in layers.absent},
        "topics": [
            {**_plain(hop), "times_us": dict(zip(layers.titles, hop.times_us, strict=True))}
            for hop in layers.hops
        ],
        "paths": [_plain(path) for path in layers.paths],
    }


def _plain(row: Hop | GraphPath) -> dict[str, Any]:
    return {
        key: {"mean": value.estimate, "low": value.low, "high": value.high}
        if isinstance(value := getattr(row, key), Interval)
        else shown
        for key, shown in asdict(row).items()
    }


def _topics(hops: Sequence[Hop]) -> list[list[str]]:
    titles = ["topic", "nodes", "1/s", "taken", "not taken", "p50 µs", "p95 µs", "mean µs"]
    return [
        titles,
        *(
            [
                ": ".join(filter(None, (hop.variant, hop.topic))),
                hop.way,
                _cell(hop.rate_hz),
                mean_count(hop.deliveries),
                mean_count(hop.not_taken),
                *map(_cell, (hop.p50_us, hop.p95_us, hop.mean_us)),
            ]
            for hop in hops
        ),
    ]


def _layers(layers: Layers, hops: Sequence[Hop]) -> list[list[str]]:
    rows = [["mean µs", *(hop.topic for hop in hops)]]
    rows += [[layers.titles[at], *(_cell(hop.times_us[at]) for hop in hops)] for at in layers.shown]
    return rows


def _path(path: GraphPath) -> str:
    variant = f"{path.variant}: " if path.variant else ""
    return (
        f"{variant}{path.title} (started by: {path.started_by}): p50 {_cell(path.p50_us)} µs, p95 "
        f"{_cell(path.p95_us)} µs, mean {_cell(path.mean_us)} µs = {SENTENCES.parts(path)}"
    )


def _cell(value: Value) -> str:
    if value is None:
        return MISSING
    if isinstance(value, Interval):
        return f"{number(value.estimate)} [{number(value.low)}, {number(value.high)}]"
    return number(value)
