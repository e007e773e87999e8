"""What came of all expected deliveries, and how long nodes took to start."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.loss.numbers import loss

TOPIC = Topic(loss, place=130)
