"""Associations of energy with time and resources, energy–delay products and Pareto fronts."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.energy.numbers import energy

TOPIC = Topic(energy, place=170, is_for_page=True)
