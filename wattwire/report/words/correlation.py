"""Print the correlations of a question's responses, under its answers."""

from __future__ import annotations

from collections.abc import Iterator

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.correlations.numbers import QuestionCorrelations, correlations
from wattwire.model.questions import Question
from wattwire.report.parts import Text
from wattwire.report.topic_page import Sentences

SENTENCES = Sentences("correlations")


def sentences(evidence: Evidence, question: Question) -> list[Text]:
    """Return a sentence for each response and correlate, or an empty list without correlates."""
    return list(_texts(correlations(evidence, question)))


def _texts(result: QuestionCorrelations) -> Iterator[Text]:
    for response in result.responses:
        if not response.is_measured:
            key = "correlations.is_measured"
            yield Text(SENTENCES.unmeasured_response(response), "item", key, "False")
        for pair in response.correlations:
            key = "correlations.conclusion"
            yield Text(SENTENCES.correlation(pair), "item", key, pair.conclusion)
    if result.unmeasured:
        number = str(len(result.unmeasured))
        yield Text(SENTENCES.unmeasured(result), "item", "correlations.unmeasured", number)
    if result.has_correlates:
        yield Text(SENTENCES.how_to_read(), "item")
