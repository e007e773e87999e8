"""The graph of nodes: latency on its edges, and CPU time on its nodes."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.graph.numbers import graph

TOPIC = Topic(graph, place=14, uses=("layers", "watched"))
