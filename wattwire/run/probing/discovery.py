"""Decide when a probe has found the publishers of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from wattwire.analysis.streams.recorded import Graph

GRAPH_S = 10.0
"""Time in which a graph must appear."""
SETTLED_S = 1.5
"""Time without a new publisher after which the search is over."""
UNMATCHED_S = 3.0
"""Time after which a graph whose topics match no requested pattern is the whole graph."""


class Discovery:
    """The search of a probe for publishers, from its begin (s, monotonic).

    `readable` is the number of publishers that the probe can read. With requested patterns,
    `ignored` are the patterns of topics that every node has, so that other topics show a graph.
    """

    def __init__(self, began_s: float, ignored: Sequence[str] | None = None) -> None:
        self._began_s = self._changed_s = began_s
        self._ignored = ignored
        self._unmatched: list[str] = []
        self.readable = 0

    def is_over(self, graph: Graph, now_s: float) -> bool:
        """Return whether the probe found no further publisher for SETTLED_S, or after GRAPH_S.

        If topics of the graph match no pattern, it is over after UNMATCHED_S without a new one.
        """
        readable = sum(topic["readable"] for topic in graph.topics.values())
        if readable != self.readable:
            self.readable, self._changed_s = readable, now_s
        unmatched = self._others(graph)
        if unmatched != self._unmatched:
            self._unmatched, self._changed_s = unmatched, now_s
        is_settled = readable > 0 and now_s >= self._changed_s + SETTLED_S
        has_no_match = bool(unmatched) and now_s >= self._changed_s + UNMATCHED_S
        return is_settled or has_no_match or now_s >= self._began_s + GRAPH_S

    def _others(self, graph: Graph) -> list[str]:
        """Return the topics that match no requested pattern, if none matches."""
        if self._ignored is None or graph.topics:
            return []
        excluded = sorted(graph.scan.get("excluded", []))
        return [n for n in excluded if not any(fnmatchcase(n, p) for p in self._ignored)]
