"""Name the latencies of topics and paths as the responses of a run, so that they can be compared.

The names follow the rules of the figures of streams.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.streams.figures import HOP_FIGURES, PATH_FIGURES, identifier
from wattwire.model.words import count, listed, plural

PATHS_MAX = 20
"""Maximum number of paths with figures, because each figure is a column of the summary."""
TOPICS_NAMED_MAX = 8
"""Maximum number of topics in a name. A longer path has the number of those in its middle."""
NUMBERED = re.compile(r" \(process \d+\)$")
"""End of the name of a node that several processes have. The next run could exchange them."""
NS_PER_US = 1000.0


@dataclass(frozen=True)
class _Route:
    """The topics of a row, the nodes that send and receive on them, and the figures in µs."""

    topics: tuple[str, ...]
    nodes: tuple[str, ...]
    started_by: str
    figures: Mapping[str, float]

    @property
    def title(self) -> str:
        return " → ".join(self.nodes)


def figures_of_layers(
    document: Mapping[str, Any], printed: Collection[str] = ()
) -> tuple[dict[str, float], list[str]]:
    """Return name → latency (µs) of the topics and of the longest paths, and notes on the others.

    `document` is a run's part on layers. A name has the topics in the order of the path. If several
    routes have the same topics, the nodes follow, then what starts the path, so that no figure
    changes to another route without a word. `printed` are names that the output of the command has.
    """
    if document["reasons"]:
        return {}, ["the layers of this run are not used, so its topics and paths have no figures"]
    hops = [
        _Route((row["topic"],), (row["sender"], row["receiver"]), "", _figures(row, HOP_FIGURES))
        for row in document["topics"]
        if row["deliveries"]
    ]
    paths = [
        _Route(
            tuple(row["topics"]), tuple(row["nodes"]), row["started_by"],
            _figures(row, PATH_FIGURES),
        )
        for row in document["paths"]
        if len(row["topics"]) > 1  # otherwise, it is a hop
    ]  # fmt: skip
    paths.sort(key=lambda path: (-len(path.topics), path.topics, path.nodes))
    notes = []
    if len(paths) > PATHS_MAX:
        notes.append(
            f"{plural(len(paths) - PATHS_MAX, 'shorter path')} without figures: only the "
            f"{PATHS_MAX} longest paths have some"
        )
    figures: dict[str, float] = {}
    for routes in (hops, paths[:PATHS_MAX]):
        named, unnamed = _named(routes)
        figures |= named
        notes += unnamed
    kept = sorted(figures.keys() & printed)
    if kept:
        notes.append(
            f"{listed(kept)}: the value that the command printed is kept, so the figure of the "
            "topic or path with this name is not stored. Give the printed one another name."
        )
    return {name: value for name, value in figures.items() if name not in kept}, notes


def _figures(row: Mapping[str, Any], ends: Sequence[str]) -> dict[str, float]:
    """Return the end of the name → latency (µs) of a row; the last words are the quantile."""
    return {end: row[f"{end.split('_')[-2]}_ns"] / NS_PER_US for end in ends}


def _named(routes: Sequence[_Route]) -> tuple[dict[str, float], list[str]]:
    """Return the figures of routes by name, and notes on routes that share a name."""
    names = list(_names(routes))
    uses = Counter(names)
    figures = {
        f"{name}_{end}": value
        for name, route in zip(names, routes, strict=True)
        if uses[name] == 1 and not any(map(NUMBERED.search, route.nodes))
        for end, value in route.figures.items()
    }
    notes = [
        f"{count(number)} paths share the name {name}, so no figures of them are stored"
        for name, number in uses.items()
        if number > 1
    ]
    notes += [
        f"{route.title}: several processes have a node of one name, which the next run could "
        "exchange, so no figures of this path are stored. Give the nodes different names."
        for name, route in zip(names, routes, strict=True)
        if uses[name] == 1 and any(map(NUMBERED.search, route.nodes))
    ]
    return figures, notes


def _names(routes: Sequence[_Route]) -> Iterator[str]:
    """Yield the first part of the figures' names, per route."""
    ways = {(route.topics, route.nodes) for route in routes}
    ways_of_topics = Counter(topics for topics, _ in ways)
    starts_of_way = Counter((route.topics, route.nodes) for route in routes)
    for route in routes:
        name = _joined(route.topics)
        if ways_of_topics[route.topics] > 1:
            name += f"_of_{_joined(route.nodes)}"
        if starts_of_way[route.topics, route.nodes] > 1:
            name += f"_by_{route.started_by}"
        yield name


def _joined(names: Sequence[str]) -> str:
    """Return the names of topics or nodes as a part of a figure's name."""
    parts = [identifier(name) for name in names]
    if len(parts) > TOPICS_NAMED_MAX:
        half = TOPICS_NAMED_MAX // 2
        parts = [*parts[:half], f"{len(parts) - 2 * half}_more", *parts[-half:]]
    return "_to_".join(parts)
