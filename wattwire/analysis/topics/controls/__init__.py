"""Control runs: the A/A noise and the cost of sampling."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.controls.numbers import controls, stored

TOPIC = Topic(controls, place=140, stored=stored)
