"""Goal, questions and metrics of the study, and what was run: factors, runs, time and machines."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.design.numbers import design

TOPIC = Topic(design, place=50, is_for_page=True)
