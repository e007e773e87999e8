"""Datagrams that the kernel discarded because some of their fragments were missing."""

from __future__ import annotations

from wattwire.analysis.topics.findings.detector import Detector
from wattwire.analysis.topics.findings.fragments.numbers import fragments

DETECTOR = Detector(fragments, place=40)
