"""The page's section on findings: each detector's finding, or why it has none."""

from __future__ import annotations

from typing import Any

from wattwire.report.findings.finding import Finding
from wattwire.report.findings.part import Findings
from wattwire.report.parts import Section, Text


def section(findings: Findings) -> Section:
    """Return the section on findings."""
    part = Section("findings", "Findings", has_no_data=not findings.items)
    part.parts.append(
        Text(
            "Detectors search the usable runs for known causes of unusual latencies. The detector "
            "of 40 ms waits also searches excluded runs and counts them separately. Findings are "
            "exploratory: the study did not ask for them. A finding is “shown” only where the "
            "study varied the setting that removes its cause, else “suspected”."
        )
    )
    for finding in findings.items:
        part.parts += _finding_parts(finding)
    reasons = " ".join(silence.words for silence in findings.silent)
    if reasons:
        part.parts.append(
            Text(f"{'Other detectors: ' if findings.items else 'No finding. '}{reasons}", "note")
        )
    return part


def _finding_parts(finding: Finding) -> list[Any]:
    parts: list[Any] = [
        Text(f"{finding.title}: {finding.standing}", "question"),
        Text(finding.cause),
        *(Text(sentence, "item") for sentence in finding.evidence),
    ]
    if finding.settles:
        parts.append(Text(finding.settles, "item"))
    return [*parts, *finding.parts]
