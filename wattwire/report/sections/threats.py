"""Build the section on threats to validity."""

from __future__ import annotations

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.dataset import Evidence
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Section, Text
from wattwire.report.words.phrases import Phrases, joined
from wattwire.report.words.threats import KINDS, TITLES, threats

PHRASES = Phrases(
    "threats_section",
    {"title": "Threats to validity", "paragraph": "{question} {threats}"},
)


def section(evidence: Evidence, answers: Answers) -> Section:
    """Return the section on threats to validity, with one paragraph per kind."""
    part = Section("threats", PHRASES("title"))
    all_threats = threats(evidence, answers)
    for kind in KINDS:
        of_kind = joined(sentence for threat_kind, sentence in all_threats if threat_kind == kind)
        if of_kind:
            paragraph = PHRASES("paragraph", question=TITLES[kind], threats=of_kind)
            part.parts.append(Text(paragraph))
    return part


PART = PagePart(190, lambda data: [section(data.evidence, data.answers)])
