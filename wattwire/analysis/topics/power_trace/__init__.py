"""Energy from the trace of an instrument, which was put in after the campaign."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.power_trace.numbers import power_trace

TOPIC = Topic(power_trace, place=93, is_for_page=True)
