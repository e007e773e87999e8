"""Flows that a study runs at the same time: rates, latencies, losses and growth."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.flows.numbers import flows

TOPIC = Topic(flows, place=35, uses=("contrasts", "interactions", "ranking"))
