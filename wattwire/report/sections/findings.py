"""The page's part on findings: what each detector found, or why it is silent."""

from __future__ import annotations

from typing import Any

from wattwire.report.findings.finding import Finding
from wattwire.report.findings.part import Findings
from wattwire.report.parts import Section, Text


def section(findings: Findings) -> Section:
    """The page's part."""
    part = Section("findings", "Findings")
    part.parts.append(
        Text(
            "Detectors looked through the usable runs for known causes of strange latencies (the "
            "one for waits of 40 ms through excluded runs as well, which it counts apart). What "
            "they find is exploratory: the study did not ask for it. It is called shown only "
            "where the study varied the setting that takes it away."
        )
    )
    for one in findings.found:
        part.parts += _told(one)
    told = " ".join(one.words for one in findings.silent)
    if told:
        part.parts.append(
            Text(f"{'Besides: ' if findings.found else 'No finding. '}{told}", "note")
        )
    return part


def _told(finding: Finding) -> list[Any]:
    told: list[Any] = [
        Text(f"{finding.title}: {finding.standing}", "question"),
        Text(finding.cause),
        *(Text(one, "item") for one in finding.evidence),
    ]
    if finding.settles:
        told.append(Text(finding.settles, "item"))
    return [*told, *finding.parts]
