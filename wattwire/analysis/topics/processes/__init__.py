"""Costs of the processes of a command or an attached system."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.processes.numbers import processes

TOPIC = Topic(processes, place=15)
