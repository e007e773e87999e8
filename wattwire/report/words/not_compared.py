"""Sentences of the headline on failed runs and on treatments without a comparable value."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.analysis import not_compared
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.not_compared import Failed
from wattwire.analysis.responses import Response
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "not_compared",
    {
        "failed": "{treatment} {outcomes:listed} of {runs:plural run}.",
        "outcome": "{outcome} in {runs:count}",
        "only_treatment": "The only treatment",
        "no_response": "No {response}: {reason}.",
        "excluded": "{reason}.",
        "more": "{more:plural further statement/further statements}: see the answers.",
    },
)

SENTENCES_MAX = 6
"""Maximum number of these sentences in the headline."""


def headline(evidence: Evidence, responses: Sequence[Response]) -> Phrase:
    """Return sentences on failed runs, followed by sentences on missing values."""
    sentences = [_failed_sentence(evidence, failed) for failed in not_compared.failed(evidence)]
    for response in responses:
        too_few = not_compared.too_few_in_all(evidence, response)
        if too_few:
            sentences.append(PHRASES("no_response", response=response.title, reason=too_few))
        else:
            reasons = not_compared.excluded(evidence, response)
            sentences += [PHRASES("excluded", reason=reason) for reason in reasons]
    more = len(sentences) - SENTENCES_MAX
    return joined([*sentences[:SENTENCES_MAX], PHRASES("more", more=more) if more > 0 else ""])


def _failed_sentence(evidence: Evidence, failed: Failed) -> Phrase:
    """Return a sentence such as "CELL died in 4 of 4 runs."."""
    treatment = " ".join(evidence.title(*item) for item in failed.levels.items())
    outcomes = [
        PHRASES("outcome", outcome=outcome.replace("_", " "), runs=runs)
        for outcome, runs in failed.outcomes
    ]
    return PHRASES(
        "failed",
        treatment=treatment or PHRASES("only_treatment"),
        outcomes=outcomes,
        runs=failed.runs,
    )
