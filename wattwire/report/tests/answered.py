"""Answer the questions of a campaign for tests: the headline, the section and its numbers."""

from __future__ import annotations

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.document import Document, document
from wattwire.analysis.topics.answers.numbers import AnsweredStudy, answered
from wattwire.analysis.topics.interactions.numbers import interactions
from wattwire.analysis.topics.ranking.numbers import ranking
from wattwire.analysis.topics.unanswered.numbers import unanswered
from wattwire.report.page_parts import PageData
from wattwire.report.parts import Section
from wattwire.report.sections import answers as answers_section
from wattwire.report.words import headline as of_answers
from wattwire.report.words.phrases import Phrase


def headline(evidence: Evidence, answers: Answers) -> Phrase:
    """Return the headline of the answers."""
    return of_answers.headline(evidence, _results(evidence, answers))


def page_headline(evidence: Evidence, answers: Answers) -> Phrase:
    """Return the headline of the page."""
    return of_answers.page_headline(evidence, _results(evidence, answers))


def answered_study(evidence: Evidence, answers: Answers) -> AnsweredStudy:
    """Return what the section on answers contains."""
    return _results(evidence, answers).result(AnsweredStudy)


def section(evidence: Evidence, answers: Answers) -> Section:
    """Return the section on the answers."""
    results = document(evidence, answers)
    return answers_section.section(PageData(evidence, answers, results, {}))


def _results(evidence: Evidence, answers: Answers) -> Document:
    """Return the results that the headline needs, without those that need run documents."""
    changes, ranked = interactions(evidence, answers), ranking(evidence, answers)
    results = {
        "interactions": changes,
        "ranking": ranked,
        "answers": answered(evidence, answers, changes, ranked),
        "unanswered": unanswered(evidence, answers),
    }
    return Document(results, {})
