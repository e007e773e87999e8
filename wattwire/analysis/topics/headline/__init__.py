"""Sentences of the title that belong to no other topic: edits, and the values of one treatment."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.headline.numbers import headline

TOPIC = Topic(headline, uses=("answers",))
