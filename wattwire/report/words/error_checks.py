"""Warnings about violated assumptions of the intervals."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire import stats
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.error_checks import Outlier, violations
from wattwire.analysis.responses import Response
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "error_checks",
    {
        "not_checked": (
            "Equal variance of the levels was not checked, because the check is limited to "
            "{runs_max:count} runs."
        ),
        "unequal": (
            "Levels with more scatter than the others: {levels}. Each interval allows for this, "
            "but F tests, which pool the error, do not."
        ),
        "unequal_level": "{level} in {response}, {ratio:number 2} times as much",
        "outlier": (
            "Outliers: {runs}. An outlier widens the intervals and has less effect on rank-based "
            "results."
        ),
        "outlier_mean": (
            "the mean of {run} and the other runs of its treatment and block in {response}, "
            "{size:number 2} standard deviations"
        ),
        "outlier_run": "{run} in {response}, {size:number 2} standard deviations",
        "correlated": (
            "Consecutive runs have correlated errors ({responses}). The intervals of ratios allow "
            "for a correlation within blocks; intervals of single treatments may be too narrow."
        ),
        "correlated_in_one_block": (
            "Consecutive runs have correlated errors ({responses}). With one block, intervals may "
            "be too narrow; measure several blocks."
        ),
        "correlated_response": "{response}, correlation {correlation:number 2}",
    },
)


def _outlier(outlier: Outlier) -> Phrase:
    run, response, size = outlier.run, outlier.response.title, outlier.size
    if outlier.averaged:
        return PHRASES("outlier_mean", run=run, response=response, size=size)
    return PHRASES("outlier_run", run=run, response=response, size=size)


def cautions(evidence: Evidence, responses: Sequence[Response]) -> list[Phrase]:
    """Return a sentence per assumption that the errors violate.

    If there are too many runs for the check of variances, a sentence states this.
    """
    violated = violations(evidence, responses)
    levels = [
        PHRASES(
            "unequal_level",
            level=evidence.title(unequal.factor, unequal.level),
            response=unequal.response.title,
            ratio=unequal.ratio,
        )
        for unequal in violated.unequal
    ]
    runs = [_outlier(outlier) for outlier in violated.outliers]
    correlations = [
        PHRASES("correlated_response", response=response.title, correlation=correlation)
        for response, correlation in violated.correlations
    ]
    sentences = []
    if evidence.usable.height > stats.RUNS_MAX:
        sentences.append(PHRASES("not_checked", runs_max=stats.RUNS_MAX))
    if levels:
        sentences.append(PHRASES("unequal", levels=joined(levels, "; ")))
    if runs:
        sentences.append(PHRASES("outlier", runs=joined(runs, "; ")))
    if correlations:
        has_blocks = evidence.usable["block"].n_unique() > 1
        sentences.append(
            PHRASES(
                "correlated" if has_blocks else "correlated_in_one_block",
                responses=joined(correlations, "; "),
            )
        )
    return sentences
