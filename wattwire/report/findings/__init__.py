"""What a campaign shows that nobody asked: known causes of strange latencies, with evidence."""

from wattwire.report.findings.part import Findings, look

__all__ = ["Findings", "look"]
