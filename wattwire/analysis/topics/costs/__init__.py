"""CPU time, memory and energy of each role, host and treatment."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.costs.numbers import costs

TOPIC = Topic(costs, place=90, is_for_page=True)
