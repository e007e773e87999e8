"""Comparison of a head with its base: the variants of a campaign, or two campaigns."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.comparison.numbers import compared_variants

TOPIC = Topic(compared_variants, place=20)
