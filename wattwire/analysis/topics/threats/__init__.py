"""Threats to the validity of the results that no other topic states."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.threats.numbers import threats

TOPIC = Topic(threats, place=190, is_for_page=True, uses=("contrasts",))
