"""Runs, for charts that a reader composes on the page, and print-ready figures of them."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.explore.numbers import explore

TOPIC = Topic(explore, place=110, is_for_page=True, uses=("audit",))
