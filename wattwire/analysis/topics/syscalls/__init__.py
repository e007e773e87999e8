"""System calls per message, which separate runs count."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.syscalls.numbers import syscalls

TOPIC = Topic(syscalls, place=100, is_for_page=True)
