"""Programs of services such as brokers and routers, and the growth of their counters."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.services.numbers import services

TOPIC = Topic(services, place=30, section="counts", is_for_page=True)
