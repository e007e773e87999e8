"""Messages that wait for an acknowledgement: Nagle's algorithm and delayed acknowledgements."""

from __future__ import annotations

from wattwire.analysis.topics.findings.delayed_ack.numbers import delayed_ack
from wattwire.analysis.topics.findings.detector import Detector

DETECTOR = Detector(delayed_ack, place=10, needs_valid_runs=False)
"""Excluded runs are also searched, because load does not cause a mode at 40 ms, and because a
waiting node leaves CPU time to the other programs, whose load can exclude the run.
"""
