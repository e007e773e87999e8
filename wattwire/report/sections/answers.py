"""Build the section with the answers to the study's questions, which topics join."""

from __future__ import annotations

from operator import itemgetter

from wattwire.report.page_parts import TITLE, HeadLine, PageData, PagePart
from wattwire.report.parts import Section
from wattwire.report.words.headline import page_headline
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases("answers", {"title": "Answers"})


def section(data: PageData) -> Section:
    """Return the section that answers each question with simultaneous intervals.

    If no question has an answer, only the topic of the answers has parts in it.
    """
    placed = data.joining("answers") if data.answers.items else data.topics["answers"].parts
    parts = sorted(placed, key=itemgetter(0))
    return Section("answers", PHRASES("title"), [part for _, part in parts])


PART = PagePart(
    10,
    lambda data: [section(data)],
    lambda data: [HeadLine(TITLE, page_headline(data.evidence, data.document))],
    of_messages=True,
)
