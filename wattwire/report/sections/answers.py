"""Build the section with the answers to the study's questions, which topics join."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from wattwire.analysis.responses import question_responses
from wattwire.report.page_parts import TITLE, HeadLine, PageData, PagePart
from wattwire.report.parts import Section
from wattwire.report.words import not_compared, unanswered
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases("answers", {"title": "Answers"})


def section(data: PageData) -> Section:
    """Return the section that answers each question with simultaneous intervals.

    If no question has an answer, only the topic of the answers has parts in it.
    """
    placed = data.joining("answers") if data.answers.items else data.topics["answers"].parts
    parts = sorted(placed, key=itemgetter(0))
    return Section("answers", PHRASES("title"), [part for _, part in parts])


def _head(data: PageData) -> Iterator[HeadLine]:
    gap_sentences = unanswered.questions(data.evidence, data.answers)
    yield HeadLine(TITLE, unanswered.headline(data.evidence, data.document))
    yield HeadLine(30, " ".join(gap_sentences), page_only=True)
    if data.evidence.study.flows:  # the title has room only for what arrives and for the best
        responses = question_responses(data.evidence)
        yield HeadLine(25, not_compared.headline(data.evidence, responses))
        yield HeadLine(26, not_compared.cautions(data.evidence, responses))


PART = PagePart(10, lambda data: [section(data)], _head, of_messages=True)
