"""Upper and lower limits of the study on responses, and their verdicts."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.limits.numbers import limits, stored

TOPIC = Topic(limits, place=30, stored=stored)
