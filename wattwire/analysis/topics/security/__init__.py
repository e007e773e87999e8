"""Security of the treatments: what the control runs that prove it showed."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.security.numbers import security

TOPIC = Topic(security, place=34)
