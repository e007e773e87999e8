"""Detectors of known causes of unusual latencies, beyond the questions of a study."""

from wattwire.report.findings.part import Findings, look

__all__ = ["Findings", "look"]
