"""What a campaign shows that nobody asked: known causes of strange latencies, with evidence."""

from wattwire.report.findings.part import Findings, look, section

__all__ = ["Findings", "look", "section"]
