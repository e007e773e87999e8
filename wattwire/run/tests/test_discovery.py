"""When the search of a probe for publishers is over."""

from __future__ import annotations

from wattwire.analysis.streams.recorded import Graph
from wattwire.run.probing.discovery import GRAPH_S, SETTLED_S, UNMATCHED_S, Discovery


def graph(**readable: int) -> Graph:
    known = Graph()
    for topic, number in readable.items():
        known.take({"kind": "topic", "topic": topic, "readable": number})
    return known


def test_the_search_is_over_when_no_further_publisher_appears() -> None:
    search = Discovery(100.0)
    assert not search.is_over(graph(), 103.0)
    assert not search.is_over(graph(a=1), 104.0)
    assert not search.is_over(graph(a=1, b=1), 104.0 + SETTLED_S - 0.1)
    assert not search.is_over(graph(a=1, b=1), 104.0 + SETTLED_S)
    assert search.is_over(graph(a=1, b=1), 104.0 + 2 * SETTLED_S)


def test_a_graph_that_never_settles_is_watched_after_a_time() -> None:
    search = Discovery(100.0)
    assert not search.is_over(graph(), 100.0 + GRAPH_S - 0.1)
    assert search.is_over(graph(), 100.0 + GRAPH_S)


def test_a_graph_without_a_matching_topic_is_known_soon() -> None:
    ignored = ["/rosout", "*/_*"]
    found = graph()
    found.take({"kind": "graph", "topics": 0, "excluded": ["/rosout", "/a/_b"]})
    search = Discovery(100.0, ignored)
    assert not search.is_over(found, 100.0 + GRAPH_S - 0.1)
    found.take({"kind": "graph", "topics": 0, "excluded": ["/rosout", "/scan"]})
    search = Discovery(100.0, ignored)
    assert not search.is_over(found, 101.0)
    assert not search.is_over(found, 101.0 + UNMATCHED_S - 0.1)
    assert search.is_over(found, 101.0 + UNMATCHED_S)
    # Without requested patterns, all topics of the graph are excluded on purpose.
    search = Discovery(100.0)
    assert not search.is_over(found, 100.0 + GRAPH_S - 0.1)
