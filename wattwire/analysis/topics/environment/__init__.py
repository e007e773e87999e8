"""Machines of a campaign and the permissions on them, as far as they limit its results."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.environment.numbers import environment

TOPIC = Topic(environment, place=20, section="threats", is_for_page=True)
