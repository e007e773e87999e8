"""Amount of work from which offloading it takes less time than doing it locally."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.break_even.numbers import break_evens

TOPIC = Topic(break_evens, place=10, section="requested-tables", is_for_page=True)
