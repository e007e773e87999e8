"""Two sources of energy that differ by more than the classes of both."""

from __future__ import annotations

from wattwire.analysis.topics.findings.detector import Detector
from wattwire.analysis.topics.findings.sources_disagree.numbers import sources_disagree

DETECTOR = Detector(sources_disagree, place=60)
