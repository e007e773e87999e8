"""Build the section with the answers to the study's questions, which topics join."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from wattwire.report.page_parts import TITLE, HeadLine, PageData, PagePart
from wattwire.report.parts import Section
from wattwire.report.topic_page import Placed
from wattwire.report.words import correlation
from wattwire.report.words.headline import page_headline
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases("answers", {"title": "Answers"})
QUESTIONS = 30
"""Place of the questions in the section: the question n has the place 30.n."""


def section(data: PageData) -> Section:
    """Return the section that answers each question with simultaneous intervals.

    If no question has an answer, only the topic of the answers has parts in it.
    """
    if data.answers.items:
        parts = [*data.joining("answers"), *_own_parts(data)]
    else:
        parts = list(data.topics["answers"].parts)
    parts.sort(key=itemgetter(0))
    return Section("answers", PHRASES("title"), [placed for _, placed in parts])


def _own_parts(data: PageData) -> Iterator[Placed]:
    """Yield the parts of the section that no topic has yet."""
    for number, question in enumerate(data.evidence.study.questions, 1):
        for correlated in correlation.sentences(data.evidence, question):
            yield (QUESTIONS, number, 30), correlated


PART = PagePart(
    10,
    lambda data: [section(data)],
    lambda data: [HeadLine(TITLE, page_headline(data.evidence, data.document))],
    of_messages=True,
)
