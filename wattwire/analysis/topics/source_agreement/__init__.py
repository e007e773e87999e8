"""Agreement of two sources of energy that cover the same runs."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.source_agreement.numbers import source_agreement

TOPIC = Topic(source_agreement, place=92, is_for_page=True)
