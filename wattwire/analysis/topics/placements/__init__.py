"""Where the nodes ran: near to each other or apart, as chosen by the scheduler or restricted."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.placements.numbers import placements

TOPIC = Topic(placements, place=161)
