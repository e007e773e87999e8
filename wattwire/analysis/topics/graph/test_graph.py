"""The graph of nodes: its edges, its CPU times, and its layout."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from wattwire.analysis.topics.graph.layout import NODE_WIDTH, ROW_NODES_MAX, placed
from wattwire.analysis.topics.graph.numbers import EDGE, NODE, RECORDED, graph
from wattwire.analysis.topics.graph.numbers import PROBE as BY_PROBE
from wattwire.analysis.topics.layers.numbers import Hop, Layers
from wattwire.analysis.topics.watched.numbers import watched_topics
from wattwire.analysis.topics.watched.test_watched import document, evidence
from wattwire.report.topic_page import topic_page


def test_a_node_is_below_its_senders_and_a_loop_is_still_placed() -> None:
    nodes = ["talker", "relay", "listener", "loop"]
    edges = [("talker", "relay"), ("relay", "listener"), ("talker", "listener"),
             ("listener", "loop"), ("loop", "relay")]  # fmt: skip
    places, routes = placed(nodes, edges)
    rows = {node: point[1] for node, (point,) in places.items()}
    assert rows == {"talker": 0.0, "relay": 1.0, "listener": 2.0, "loop": 3.0}
    assert [len(route) for route in routes] == [2, 2, 3, 2, 3]
    for (sender, receiver), route in zip(edges, routes, strict=True):
        assert (route[0], route[-1]) == (places[sender][0], places[receiver][0])


def test_boxes_of_twenty_nodes_do_not_overlap() -> None:
    nodes = [f"n{at}" for at in range(20)]
    edges = [("n0", node) for node in nodes[1:14]] + [(f"n{at}", f"n{at + 6}") for at in (8, 9, 13)]
    places, _ = placed(nodes, edges)
    points = [point for (point,) in places.values()]
    assert len(set(points)) == 20
    for (x1, y1), (x2, y2) in combinations(points, 2):
        assert y1 != y2 or abs(x1 - x2) >= NODE_WIDTH - 1e-9
    assert all(sum(y == row for _, y in points) <= ROW_NODES_MAX for row in range(20))


def test_edges_of_a_probe_join_publishers_and_readers_with_the_cpu_of_their_processes() -> None:
    of_runs = evidence(document(1000))
    of_runs.usable = of_runs.usable.with_columns(window_s=10.0)
    result = graph(of_runs, Layers(), watched_topics(of_runs))
    assert [(e.topic, e.sender, e.receiver, e.taken_by) for e in result.edges] == [
        ("/a", "/n1", "/n2", BY_PROBE), ("/b", "/n2", "/n3", BY_PROBE),
    ]  # fmt: skip
    cpu = {row.node: row.cpu_percent for row in result.nodes}
    assert cpu == {"/n1": pytest.approx(1.0), "/n2": pytest.approx(4.0), "/n3": pytest.approx(2.0)}
    texts = {point["name"] for point in result.chart.points if point["kind"] in (EDGE, NODE)}
    assert texts == {"/n1", "/n2", "/n3", "/a 400 µs", "/b 400 µs"}
    page = topic_page("graph", result).section()
    assert page is not None
    tables = {part.id: part.rows for part in page.parts if hasattr(part, "rows")}
    assert [row["p50_us"] for row in tables["graph-edges"]] == [400.0, 400.0]
    assert [row["process"] for row in tables["graph-nodes"]] == ["talker", "relay", "listener"]


def test_recorded_layers_have_the_latency_of_the_receiver() -> None:
    hop = Hop("", "/a", "/n1", "/n2", 50.0, 10, 10, 0, 300.0, 310.0, 305.0)
    of_runs = evidence(document(1000))
    of_runs.usable = of_runs.usable.with_columns(window_s=10.0)
    of_runs.runs["r0"]["layers"] = {"pids": {"/n1": 3}}
    result = graph(of_runs, replace(Layers(), hops=(hop,)), watched_topics(of_runs))
    (edge,) = result.edges
    assert (edge.p50_us, edge.taken_by, result.has_probe) == (300.0, RECORDED, False)
    assert result.nodes[0].process == "listener"  # as the recording tells


def test_a_campaign_without_messages_has_no_graph() -> None:
    of_runs = evidence(document(0, streams=[], readers=[]))
    assert graph(of_runs, Layers(), watched_topics(of_runs)).edges == ()
