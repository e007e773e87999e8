"""Steps of latency or loss at a payload size."""

from __future__ import annotations

from wattwire.analysis.topics.findings.detector import Detector
from wattwire.analysis.topics.findings.sizes.numbers import sizes

DETECTOR = Detector(sizes, place=20)
