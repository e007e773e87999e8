"""Settings that the libraries of nodes report to be in force, and their guarantees."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.settings.numbers import settings

TOPIC = Topic(settings, place=160)
