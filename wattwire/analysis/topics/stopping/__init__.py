"""Stopping rule of a campaign that stops by width, and its last look."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.stopping.numbers import stopping, stored

TOPIC = Topic(stopping, place=10, section="answers", stored=stored)
