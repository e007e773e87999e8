"""The study's upper and lower limits on responses, and whether the runs keep them."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.limits.numbers import limits, stored

TOPIC = Topic(limits, place=30, stored=stored)
