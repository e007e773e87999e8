"""Sentences on failed calls and unsent messages, for the headline, the counts and the threats."""

from __future__ import annotations

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import column
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "failed_calls",
    {
        "calls_failed": "Calls failed: {treatments:listed}{rest}.",
        "never_sent": (
            "Due but never sent, and in no share of lost messages: {treatments:listed}{rest}."
        ),
        "treatment_failed": "{treatment} ({calls:count}, {share:percent})",
        "all_runs": "all runs",
        "more_treatments": " and {more:plural more treatment}",
    },
)

FEW = 0.001
"""Share of the due messages up to which skipped slots of a timer are no result."""
NAMED_MAX = 5
"""Maximum number of treatments that the sentence on failed calls names."""


def sentence(evidence: Evidence) -> Phrase:
    """Return a sentence on treatments with failed calls and their counts.

    The result is "" if no call failed.
    """
    treatments, rest = _treatments(evidence, "failed", 0.0)
    return PHRASES("calls_failed", treatments=treatments, rest=rest) if treatments else Phrase()


def never_sent(evidence: Evidence) -> Phrase:
    """Return a sentence on treatments whose messages were due and never sent.

    A loss is a share of the messages that were sent, so it is small if a server died early. The
    result is "" if at most the share FEW of the due messages is unsent.
    """
    treatments, rest = _treatments(evidence, "unsent", FEW)
    return PHRASES("never_sent", treatments=treatments, rest=rest) if treatments else Phrase()


def _treatments(
    evidence: Evidence, name: str, share_min: float
) -> tuple[list[Phrase], Phrase | str]:
    """Return the first treatments whose share of the count `name` is above `share_min`, and the
    number of the others.
    """
    treatments = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        count, due = column(frame, name), np.nansum(column(frame, "expected"))
        due += np.nansum(column(frame, "unsent"))
        if np.nansum(count) > share_min * due:
            title = evidence.treatment_title(dict(zip(evidence.varied, key, strict=True)))
            treatments.append(
                PHRASES(
                    "treatment_failed",
                    treatment=title or PHRASES("all_runs"),
                    calls=float(np.nansum(count)),
                    share=float(np.nansum(count) / due),
                )
            )
    more = len(treatments) - NAMED_MAX
    rest = PHRASES("more_treatments", more=more) if more > 0 else ""
    return treatments[:NAMED_MAX], rest
