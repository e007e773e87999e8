"""Correlations of a question's responses with other quantities."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.correlations.numbers import correlations

TOPIC = Topic(correlations, place=30, section="answers", is_for_page=True)
