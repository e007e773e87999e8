"""Validity limits: campaigns that are judged again, and notices at the top of the page."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.validity.numbers import stored, validity

TOPIC = Topic(validity, stored=stored)
