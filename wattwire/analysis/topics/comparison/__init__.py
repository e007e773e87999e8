"""Whether a head is worse than its base: the variants of a campaign, and two campaigns."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.comparison.numbers import compared_variants

TOPIC = Topic(compared_variants, place=20)
