"""Phrase on the requested part of a design."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "design_part",
    {"part": "{requested}; {unrequested:plural treatment} of the design not requested"},
)


def requested_part(evidence: Evidence) -> Phrase:
    """Return the requested part of the design, or "" for the whole design."""
    part = evidence.study.part
    return PHRASES("part", requested=part.option, unrequested=part.unselected) if part else Phrase()
