"""Findings beyond the study's questions: known causes of unusual latencies, with evidence."""

from wattwire.report.findings.part import Findings, look

__all__ = ["Findings", "look"]
