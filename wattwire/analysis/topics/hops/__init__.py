"""Losses, latency and faults of each hop of pipelines."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.hops.numbers import hops

TOPIC = Topic(hops, place=10, section="latency", is_for_page=True)
