"""Answer the questions of a campaign for tests: the headline, the section and its numbers."""

from __future__ import annotations

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.document import Document, document
from wattwire.analysis.topics.answers.numbers import AnsweredStudy, answered
from wattwire.analysis.topics.comparison.numbers import compared_variants
from wattwire.analysis.topics.design.numbers import design
from wattwire.analysis.topics.flows.numbers import flows
from wattwire.analysis.topics.headline.numbers import headline as of_no_topic
from wattwire.analysis.topics.interactions.numbers import interactions
from wattwire.analysis.topics.loss.numbers import loss
from wattwire.analysis.topics.methods.numbers import Methods, methods
from wattwire.analysis.topics.ranking.numbers import ranking
from wattwire.analysis.topics.unanswered.numbers import unanswered
from wattwire.report import headline as of_page
from wattwire.report.page_parts import PageData
from wattwire.report.parts import Section


def headline(evidence: Evidence, answers: Answers) -> str:
    """Return the headline of the answers."""
    return of_page.headline(_results(evidence, answers))


def page_headline(evidence: Evidence, answers: Answers) -> str:
    """Return the headline of the page."""
    return " ".join(of_page.page_headline(_results(evidence, answers)))


def answered_study(evidence: Evidence, answers: Answers) -> AnsweredStudy:
    """Return what the section on answers contains."""
    return _results(evidence, answers).result(AnsweredStudy)


def methods_of(evidence: Evidence) -> Methods:
    """Return what the section on methods states."""
    compared, planned = compared_variants(evidence), design(evidence)
    return methods(evidence, answer_all(evidence), compared, planned)


def section(evidence: Evidence, answers: Answers) -> Section:
    """Return the section on the answers."""
    results = document(evidence, answers)
    data = PageData(results)
    section = data.topics["answers"].section(data.joining("answers"))
    assert section is not None
    return section


def _results(evidence: Evidence, answers: Answers) -> Document:
    """Return the results that the headline needs, without those that need run documents."""
    changes, ranked = interactions(evidence, answers), ranking(evidence, answers)
    study = answered(evidence, answers, changes, ranked)
    results = {
        "loss": loss(evidence),
        "interactions": changes,
        "ranking": ranked,
        "comparison": compared_variants(evidence),
        "answers": study,
        "headline": of_no_topic(evidence, study),
        "flows": flows(evidence, answers, changes, ranked),
        "unanswered": unanswered(evidence, answers),
    }
    return Document(results, {})
