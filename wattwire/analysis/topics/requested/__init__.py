"""Tables and figures that a study requests, with published numbers."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.requested.numbers import requested

TOPIC = Topic(requested, place=40, is_for_page=True)
