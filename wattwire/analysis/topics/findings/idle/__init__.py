"""Latency that falls as the rate rises, as if infrequent messages had to wake a component."""

from __future__ import annotations

from wattwire.analysis.topics.findings.detector import Detector
from wattwire.analysis.topics.findings.idle.numbers import idle

DETECTOR = Detector(idle, place=30)
