"""Effects of the order of runs: drift over the campaign, and carry-over between runs."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.order_effects.numbers import order_effects

TOPIC = Topic(order_effects, place=10, section="audit", is_for_page=True)
