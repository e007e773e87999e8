"""Tests that papers use, on the runs of this campaign, with their steps and error rates."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.paper_tests.numbers import paper_tests

TOPIC = Topic(paper_tests, place=180, is_for_page=True)
