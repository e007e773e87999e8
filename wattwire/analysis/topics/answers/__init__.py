"""Answers to the study's questions, and what the headline states of them."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.answers.numbers import answered, stored

TOPIC = Topic(
    answered,
    place=10,
    stored=stored,
    uses=("contrasts", "interactions", "ranking"),
)
