"""Treatments and questions without an answer, and what is not compared."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.unanswered.numbers import unanswered

TOPIC = Topic(unanswered, place=90, section="design", uses=("contrasts",))
