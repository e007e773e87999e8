"""Topics that a probe watched, and the CPU time per message of the processes on them."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.watched.numbers import watched_topics

TOPIC = Topic(watched_topics, place=17)
