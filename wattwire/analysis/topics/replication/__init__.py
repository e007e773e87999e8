"""Printed numbers of a paper, and the same numbers computed from its published data."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.replication.numbers import replication

TOPIC = Topic(replication, place=60, is_for_page=True)
