"""Report known causes of unusual latencies, with evidence, beyond the study's questions."""

from wattwire.report.findings.part import Findings, look

__all__ = ["Findings", "look"]
