"""Join the sentences of the page's headline, which the topics state.

Each sentence has a place (`<header class="title" data-place="…">` in the template of its topic):

    0        on a command
    5        a warning about requested answers that are missing
    10 – 20  edits, messages that were never sent, what arrives of each flow
    30 – 40  what is not compared, answers at remaining levels, an incomplete campaign
    50       no result, or else the verdict on variants, the values of a single treatment, the best
             alternative by condition, or the best alternative: only the first of these
    60       the answers
    70 – 80  what qualifies the ratios, and failed calls
    90       treatments without an answer, emulated devices
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from operator import attrgetter

from wattwire.analysis.document import Document
from wattwire.analysis.topics.headline.numbers import PageHeadline
from wattwire.analysis.topics.unanswered.numbers import Unanswered
from wattwire.report.topic_page import Sentences, TitleSentence, title_sentences

UNANSWERED = Sentences("unanswered")
COMMAND, WARNING, ABSTRACT, ALTERNATIVES, APART = 0, 5, 10, 50, 90
VERDICT = (ALTERNATIVES, 1)
"""Place of the verdict on the variants."""


def page_headline(document: Document, stated: Iterable[TitleSentence] | None = None) -> list[str]:
    """Return the sentences of the page's headline.

    `stated` are those of all topics, for a caller that has rendered the topics' pages.
    """
    sentences = _by_place(document, stated)
    if document.result(PageHeadline).is_command:
        places = ((COMMAND,), VERDICT)
        return [sentence.text for sentence in sentences if sentence.place in places]
    return [
        *_texts(sentences, WARNING, ABSTRACT),
        *_abstract(sentences, document),
        *_texts(sentences, APART),
    ]


def headline(document: Document, stated: Iterable[TitleSentence] | None = None) -> str:
    """Return the headline without warnings, treatments without an answer and emulated devices.

    `stated` is as in `page_headline`.
    """
    return " ".join(_abstract(_by_place(document, stated), document))


def questions_without_answer(document: Document) -> list[str]:
    """Return a sentence per fixed factor, and one per reason for responses without a number."""
    result = document.result(Unanswered)
    return [*map(UNANSWERED.held, result.held), *map(UNANSWERED.gap, result.gaps)]


def shortened(sentences: Sequence[TitleSentence], chars_max: int) -> list[TitleSentence]:
    """Return the sentences of at most `chars_max` characters, or the first if it is longer.

    The minor sentence is left out first, then the last ones. The answers of the page have all.
    """
    kept = list(sentences)
    while len(kept) > 1 and sum(len(item.text) + 1 for item in kept) - 1 > chars_max:
        kept.remove(next((item for item in kept[1:] if item.is_minor), kept[-1]))
    return kept


def split(sentences: Sequence[str], chars_max: int) -> tuple[str, str]:
    """Return the first sentences, of at most `chars_max` characters, and the others.

    The first sentence is always among the first.
    """
    ends = list(accumulate(len(sentence) + 1 for sentence in sentences))
    kept = max(1, sum(end - 1 <= chars_max for end in ends))
    return " ".join(sentences[:kept]), " ".join(sentences[kept:])


def _abstract(sentences: Sequence[TitleSentence], document: Document) -> list[str]:
    alternatives = (item.place for item in sentences if item.place[0] == ALTERNATIVES)
    first = next(alternatives, None)
    own = [
        sentence
        for sentence in sentences
        if ABSTRACT <= sentence.place[0] < APART
        and (sentence.place[0] != ALTERNATIVES or sentence.place == first)
    ]
    chars_max = document.result(PageHeadline).chars_max
    kept = own if chars_max is None else shortened(own, chars_max)
    return [sentence.text for sentence in kept]


def _texts(sentences: Iterable[TitleSentence], first: int, end: int | None = None) -> Iterator[str]:
    """Yield the sentences of places from `first` on and before `end`."""
    for sentence in sentences:
        if first <= sentence.place[0] and (end is None or sentence.place[0] < end):
            yield sentence.text


def _by_place(
    document: Document, stated: Iterable[TitleSentence] | None = None
) -> list[TitleSentence]:
    if stated is None:
        stated = chain.from_iterable(
            title_sentences(topic, result) for topic, result in document.results.items()
        )
    return sorted(stated, key=attrgetter("place"))
