"""Counts of deliveries by their fate, and startup times of nodes."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.loss.numbers import loss

TOPIC = Topic(loss, place=130)
