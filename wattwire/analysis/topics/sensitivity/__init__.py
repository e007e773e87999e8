"""Sensitivity of the answers: ranks, shares of variance, and violated assumptions."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.sensitivity.numbers import sensitivity

TOPIC = Topic(sensitivity, place=70, section="answers", is_for_page=True, uses=("contrasts",))
