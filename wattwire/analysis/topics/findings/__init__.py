"""Known causes of unusual latencies and losses. Each folder here detects one and describes it."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.findings.numbers import findings

TOPIC = Topic(findings, place=70, needs_series=True, uses=("contrasts",))
