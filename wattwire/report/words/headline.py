"""Join the sentences of the headline, most of which topics state."""

from __future__ import annotations

from collections.abc import Iterator

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.document import Document
from wattwire.analysis.topics.answers.numbers import AnsweredStudy
from wattwire.analysis.topics.comparison.result import ComparedVariants
from wattwire.analysis.topics.interactions.numbers import Interactions
from wattwire.analysis.topics.loss.numbers import failed_calls, never_sent
from wattwire.analysis.topics.ranking.numbers import RankedAlternatives
from wattwire.analysis.topics.unanswered.numbers import Unanswered
from wattwire.model import words
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.report.words.headlines import flow_headline, growth_clause, single_treatment
from wattwire.report.words.phrases import Phrase, joined

ANSWERS, LOSS, RANKING = Sentences("answers"), Sentences("loss"), Sentences("ranking")
UNANSWERED = Sentences("unanswered")


def page_headline(evidence: Evidence, document: Document) -> Phrase:
    """Return the headline of the page.

    It consists of a warning about lost answers, the headline, the treatments without an answer, and
    the emulated devices.
    """
    result = document.result(Unanswered)
    return joined(
        [
            UNANSWERED.lost(result.lost) if result.lost else "",
            headline(evidence, document),
            *map(UNANSWERED.missing, result.named),
            UNANSWERED.more_treatments(result),
            UNANSWERED.emulated(result.emulated) if result.emulated else "",
        ]
    )


def questions_without_answer(document: Document) -> list[str]:
    """Return a sentence per fixed factor, and one per reason for responses without a number."""
    result = document.result(Unanswered)
    return [*map(UNANSWERED.held, result.held), *map(UNANSWERED.gap, result.gaps)]


def headline(evidence: Evidence, document: Document) -> Phrase:
    """Return the headline.

    The headline has sentences on edits, treatments without comparison and failed calls, and the
    first sentences of the answers.
    """
    result = document.result(AnsweredStudy).headline
    failed = LOSS.calls_failed(failed_calls(evidence))
    # The share of lost messages does not include them, so they precede the answers.
    unsent = LOSS.never_sent(never_sent(evidence))
    edited = joined([words.edited_words(evidence.edited), unsent])
    first = joined(first_sentences(evidence, document))
    if evidence.study.flows:
        # What arrives of each flow precedes; the page has the notes below its title.
        text = joined([edited, flow_headline.arrivals(evidence), first, failed])
        winner = result.first.winner if result.first else None
        return flow_headline.shortened(text, ANSWERS.winner(winner) if winner else "")
    if result.ended:
        return joined([edited, first, failed])
    return joined(
        [
            edited,
            *_uncompared(document.result(Unanswered)),
            *map(ANSWERS.at_level, result.remaining),
            first,
            *_cautions(document.result(Unanswered)),
            failed,
        ]
    )


def _uncompared(result: Unanswered) -> Iterator[str]:
    """Yield sentences on failed treatments, followed by sentences on missing values."""
    yield from map(UNANSWERED.uncompared, result.statements)
    if result.more_statements > 0:
        yield UNANSWERED.more_statements(result.more_statements)


def _cautions(result: Unanswered) -> Iterator[str]:
    """Yield sentences that qualify the ratios: runs that are left out, and lost messages."""
    if result.left_out:
        yield UNANSWERED.left_out(result.left_out)
    if result.lossy:
        yield UNANSWERED.lossy(result.lossy)


def first_sentences(evidence: Evidence, document: Document) -> Iterator[str]:
    """Yield the first sentences of the page.

    They state the verdict on the variants, or else the best alternative. If no alternative is
    ranked, they state whether one side of the primary factor's first answer that is not on energy
    is better in all responses, and this answer, or the reason for its absence.
    """
    study = document.result(AnsweredStudy)
    if study.headline.incomplete:
        yield ANSWERS.incomplete(study.headline.incomplete)
    if study.headline.has_results:
        yield from _before_answers(evidence, document)
    yield from topic_page("answers", study).sentences


def _before_answers(evidence: Evidence, document: Document) -> Iterator[str]:
    """Yield what precedes the answers or replaces them."""
    study = document.result(AnsweredStudy)
    ranked = document.result(RankedAlternatives)
    if study.judges_variants:
        yield from topic_page("comparison", document.result(ComparedVariants)).sentences
    elif study.headline.without:
        yield single_treatment.sentence(evidence)
    elif evidence.study.flows:
        growth = growth_clause.growth(study.contrasts, document.result(Interactions))
        yield flow_headline.sentence(evidence, ranked.choices, growth)
    elif ranked.headline:
        yield RANKING.headline(ranked.headline)
