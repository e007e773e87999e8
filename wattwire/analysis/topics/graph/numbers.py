"""Compute the graph of the nodes that were measured: latency of each edge, CPU time of each node.

The latency of an edge is that of the receiver if its process recorded layers, and otherwise that of
the probe, which is one more reader of the topic. The CPU time is that of the node's process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.charts import Chart, Point, rounded
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.graph.layout import placed
from wattwire.analysis.topics.layers.numbers import Layers
from wattwire.analysis.topics.processes.executed import Value, mean_of
from wattwire.analysis.topics.watched.numbers import WatchedTopics, windows_of
from wattwire.model.words import number
from wattwire.stats import Interval

NODES_MAX = 40
"""Maximum number of nodes in the figure; the tables have all."""
RECORDED, PROBE = "receiver", "probe"
HALF_BOX_ROWS = 0.165
"""Half the height of a node's box, in rows."""
EDGE, BEND, NODE = "edge", "bend", "node"
"""Kinds of the points of the chart: an edge's label, a point of its way, and a node."""


@dataclass(frozen=True)
class GraphEdge:
    """A topic from a node to another. `taken_by` is RECORDED or PROBE: whose take ends it."""

    topic: str
    sender: str
    receiver: str
    rate_hz: Value
    p50_us: Value
    taken_by: str


@dataclass(frozen=True)
class GraphNode:
    """A node, its process, and the CPU time of this process in percent of a core.

    `shared` is the number of nodes in the process, which share the CPU time.
    """

    node: str
    process: str
    cpu_percent: Value
    shared: int


@dataclass(frozen=True)
class Graph:
    """The graph of a campaign, or of the first of its variants; empty without messages."""

    variant: str = ""
    edges: tuple[GraphEdge, ...] = ()
    nodes: tuple[GraphNode, ...] = ()
    chart: Chart = Chart()
    shown: int = 0

    @property
    def has_probe(self) -> bool:
        """Whether the latency of an edge is that of the probe."""
        return any(edge.taken_by == PROBE for edge in self.edges)

    @property
    def left_out(self) -> int:
        """The number of nodes that the figure does not show."""
        return len(self.nodes) - self.shown


def graph(evidence: Evidence, layers: Layers, watched: WatchedTopics) -> Graph:
    """Return the graph, whose edges are from the recorded layers, or else from a probe."""
    if not layers.hops and not watched.topics:
        return Graph()
    windows = windows_of(evidence)
    variant = windows[0].variant if windows else ""
    edges = _recorded(layers, variant) or _watched(evidence, watched, variant)
    if not edges:
        return Graph()
    own = [window for window in windows if window.variant == variant]
    names = dict.fromkeys(name for edge in edges for name in (edge.sender, edge.receiver))
    pids = [_pids(window.run) for window in own]
    rows = []
    for name in names:
        shares, labels = [], set()
        for window, of_window in zip(own, pids, strict=True):
            pid = of_window.get(name)
            if pid is not None and pid in window.cpu_s and window.window_s:
                shares.append(100 * window.cpu_s[pid] / window.window_s)
                labels.add(window.labels[pid])
        label = labels.pop() if len(labels) == 1 else ""
        same = [of for of in pids[-1:] for n in names if of.get(n) and of.get(n) == of.get(name)]
        rows.append(GraphNode(name, label, mean_of(shares), max(1, len(same))))
    shown = {row.node for row in rows[:NODES_MAX]}
    return Graph(variant, tuple(edges), tuple(rows), _chart(rows[:NODES_MAX], edges), len(shown))


def _pids(run: Mapping[str, Any]) -> dict[str, int]:
    """Return node → number of its process, as the layers or the probe of a run tell."""
    topics = run.get("topics") or {"streams": [], "readers": []}
    ends = [*topics["streams"], *topics["readers"]]
    watched = {end["node"]: end["pid"] for end in ends if end["pid"] is not None}
    return watched | (run.get("layers") or {}).get("pids", {})


def _recorded(layers: Layers, variant: str) -> list[GraphEdge]:
    return [
        GraphEdge(hop.topic, hop.sender, hop.receiver, hop.rate_hz, hop.p50_us, RECORDED)
        for hop in layers.hops
        if hop.variant == variant
    ]


def _watched(evidence: Evidence, watched: WatchedTopics, variant: str) -> list[GraphEdge]:
    """Return an edge from each publisher that a probe watched to each reader of the topic."""
    documents = [w.run["topics"] for w in windows_of(evidence)
                 if w.variant == variant and "topics" in w.run]  # fmt: skip
    readers = dict.fromkeys(
        (reader["topic"], reader["node"])
        for document in documents for reader in document["readers"] if reader["published"]
    )  # fmt: skip
    apart = {(m.topic, m.sender, m.receiver) for m in watched.mismatches}
    return [
        GraphEdge(row.topic, row.node, node, row.rate_hz, row.p50_us, PROBE)
        for row in watched.topics
        for topic, node in readers
        if row.variant == variant and topic == row.topic and (topic, row.node, node) not in apart
    ]


def _chart(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> Chart:
    """Return the points of the figure. Edges of the same two nodes share a line and its label."""
    names = [row.node for row in nodes]
    labels: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        if edge.sender != edge.receiver and {edge.sender, edge.receiver} <= {*names}:
            label = f"{edge.topic} {_amount(edge.p50_us, 'µs')}".strip()
            labels.setdefault((edge.sender, edge.receiver), []).append(label)
    places, routes = placed(names, labels)
    points: list[Point] = []
    for row in nodes:
        ((x, y),) = places[row.node]
        cpu = _amount(row.cpu_percent, "% CPU") or "CPU unknown"
        points.append({"kind": NODE, "x": rounded(x), "y": y, "name": row.node, "value": cpu,
                       "process": row.process})  # fmt: skip
    for number_of_edge, ((_, texts), route) in enumerate(zip(labels.items(), routes, strict=True)):
        step = 1 if route[-1][1] > route[0][1] else -1
        (x1, y1), (x2, y2) = route[0], route[-1]
        way = [(x1, y1 + step * HALF_BOX_ROWS), *route[1:-1], (x2, y2 - step * HALF_BOX_ROWS)]
        for order, (x, y) in enumerate(way):
            points.append({"kind": BEND, "x": rounded(x), "y": y, "edge": number_of_edge,
                           "order": order})  # fmt: skip
        (x1, y1), (x2, y2) = way[:2]
        share = (0.36, 0.5, 0.64)[number_of_edge % 3]  # neighbouring labels are not on one line
        middle = (x1 + share * (x2 - x1), y1 + share * (y2 - y1))
        points.append({
            "kind": EDGE, "x": rounded(middle[0]), "y": rounded(middle[1]),
            "name": texts[0] if len(texts) == 1 else f"{texts[0]} (+{len(texts) - 1})",
            "value": "; ".join(texts), "down": int(step > 0),
            "end_x": rounded(way[-1][0]), "end_y": rounded(way[-1][1]),
        })  # fmt: skip
    rows = 1 + max(int(y) for ((_, y),) in places.values())
    return Chart(points=points, rows=[str(row) for row in range(rows)])


def _amount(value: Value, unit: str) -> str:
    """Return a value with its unit; "" if it is unknown."""
    if value is None:
        return ""
    return f"{number(value.estimate if isinstance(value, Interval) else value)} {unit}"
