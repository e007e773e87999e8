"""What the page's title states about no other topic: edits, and the values of one treatment."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.headline.numbers import headline

TOPIC = Topic(headline, uses=("answers",))
