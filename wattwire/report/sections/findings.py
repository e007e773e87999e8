"""Build the section with the finding of each detector, or the reason why it has none."""

from __future__ import annotations

from typing import Any

from wattwire.report.findings.finding import Finding
from wattwire.report.findings.part import Findings
from wattwire.report.page_parts import HeadLine, PagePart
from wattwire.report.parts import Section, Text
from wattwire.report.words.phrases import Phrases, joined

PHRASES = Phrases(
    "findings",
    {
        "title": "Findings",
        "lead": (
            "Detectors search the valid runs for known causes of unusual latencies. The detector "
            "of 40 ms waits also searches excluded runs and counts them separately. Findings are "
            "exploratory, because no question of the study requests them. A finding is “shown” "
            "only if the study varied the setting that removes its cause, or if two independent "
            "counts agree in each of several runs; otherwise it is “suspected”."
        ),
        "finding": "{finding}: {standing}",
        "other_detectors": "Other detectors: {reasons}",
        "no_finding": "No finding. {reasons}",
    },
)


def section(findings: Findings) -> Section:
    """Return the section on findings."""
    part = Section("findings", PHRASES("title"), has_no_data=not findings.items)
    part.parts.append(Text(PHRASES("lead")))
    for finding in findings.items:
        part.parts += _finding_parts(finding)
    reasons = joined(silence.words for silence in findings.silent)
    if reasons:
        text = PHRASES("other_detectors" if findings.items else "no_finding", reasons=reasons)
        part.parts.append(Text(text, "note"))
    return part


def _finding_parts(finding: Finding) -> list[Any]:
    parts: list[Any] = [
        Text(PHRASES("finding", finding=finding.title, standing=finding.standing), "question"),
        Text(finding.cause),
        *(Text(sentence, "item") for sentence in finding.evidence),
    ]
    if finding.settles:
        parts.append(Text(finding.settles, "item"))
    return [*parts, *finding.parts]


PART = PagePart(
    70,
    lambda data: [section(data.findings)],
    lambda data: [HeadLine(60, data.findings.in_short)],
    measured_only=True,
    of_messages=True,
)
