"""Sources of the values of imported data, and the excluded files and rows."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.sources.numbers import sources

TOPIC = Topic(sources, place=62, is_for_page=True)
