"""Sentence on treatments with failed calls, for the headline, the counts and the threats."""

from __future__ import annotations

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import column
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "failed_calls",
    {
        "calls_failed": "Calls failed: {treatments:listed}{rest}.",
        "treatment_failed": "{treatment} ({calls:count}, {share:percent})",
        "all_runs": "all runs",
        "more_treatments": " and {more:plural more treatment}",
    },
)

NAMED_MAX = 5
"""Maximum number of treatments that the sentence on failed calls names."""


def sentence(evidence: Evidence) -> Phrase:
    """Return a sentence on treatments with failed calls and their counts.

    The result is "" if no call failed.
    """
    treatments = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        failed, expected = column(frame, "failed"), column(frame, "expected")
        if np.nansum(failed) > 0:
            levels = zip(evidence.varied, key, strict=True)
            title = ", ".join(evidence.title(factor, level) for factor, level in levels)
            treatments.append(
                PHRASES(
                    "treatment_failed",
                    treatment=title or PHRASES("all_runs"),
                    calls=float(np.nansum(failed)),
                    share=float(np.nansum(failed) / np.nansum(expected)),
                )
            )
    if not treatments:
        return Phrase()
    more = len(treatments) - NAMED_MAX
    rest = PHRASES("more_treatments", more=more) if more > 0 else ""
    return PHRASES("calls_failed", treatments=treatments[:NAMED_MAX], rest=rest)
