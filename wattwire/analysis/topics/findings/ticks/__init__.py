"""Messages that wait for the next look of a receiver that sleeps in a loop."""

from __future__ import annotations

from wattwire.analysis.topics.findings.detector import Detector
from wattwire.analysis.topics.findings.ticks.numbers import ticks

DETECTOR = Detector(ticks, place=15)
