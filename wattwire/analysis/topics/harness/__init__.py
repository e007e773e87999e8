"""Cost of measuring: CPU time of the harness, phases of a run, and round trips of kits."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.harness.numbers import harness

TOPIC = Topic(harness, place=150, is_for_page=True)
