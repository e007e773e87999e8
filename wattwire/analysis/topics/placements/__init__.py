"""Placement of the nodes: near to each other or apart, by the scheduler or by a restriction."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.placements.numbers import placements

TOPIC = Topic(placements, place=161)
