"""Warm-up from settling runs, and the steady state of the runs after it."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.settling.numbers import settling

TOPIC = Topic(settling, place=20, section="latency", needs_series=True)
