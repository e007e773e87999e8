"""Audit trail: run order, exclusions, attempts, meters, plan, and facts on the machines."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.audit.numbers import audit

TOPIC = Topic(audit, place=200, is_for_page=True)
