"""The time that each message spends in each layer, and the paths of messages through the graph."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.layers.numbers import layers

TOPIC = Topic(layers, place=16)
