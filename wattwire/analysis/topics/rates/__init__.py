"""Rates of each sender and in total: offered, sent and delivered."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.rates.numbers import rates

TOPIC = Topic(rates, place=10, section="counts", is_for_page=True)
