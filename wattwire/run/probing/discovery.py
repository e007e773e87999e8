"""Decide when a probe has found the publishers of a graph."""

from __future__ import annotations

from wattwire.analysis.streams.recorded import Graph

GRAPH_S = 10.0
"""Time in which a graph must appear."""
SETTLED_S = 1.5
"""Time without a new publisher after which the search is over."""


class Discovery:
    """The search of a probe for publishers, from its begin (s, monotonic).

    `readable` is the number of publishers that the probe can read.
    """

    def __init__(self, began_s: float) -> None:
        self._began_s = self._changed_s = began_s
        self.readable = 0

    def is_over(self, graph: Graph, now_s: float) -> bool:
        """Return whether the probe found no further publisher for SETTLED_S, or after GRAPH_S."""
        readable = sum(topic["readable"] for topic in graph.topics.values())
        if readable != self.readable:
            self.readable, self._changed_s = readable, now_s
        is_settled = readable > 0 and now_s >= self._changed_s + SETTLED_S
        return is_settled or now_s >= self._began_s + GRAPH_S
