"""Distributions and percentiles of latency, hosts' clocks, late senders and outages."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.latency.numbers import latency

TOPIC = Topic(latency, place=80, needs_series=True)
