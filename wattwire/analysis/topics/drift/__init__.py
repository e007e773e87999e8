"""Drift of a robot that obeys the messages of a study as its commands, and its paths."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.drift.numbers import drifts

TOPIC = Topic(drifts, place=36)
