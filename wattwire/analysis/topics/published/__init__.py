"""Numbers that a paper prints, next to those of this campaign."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.published.numbers import published

TOPIC = Topic(published, place=120, is_for_page=True)
