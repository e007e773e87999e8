"""Ratios that depend on the level of another factor."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.interactions.numbers import interactions, stored

TOPIC = Topic(interactions, place=80, section="answers", stored=stored, uses=("contrasts",))
