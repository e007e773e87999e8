"""Build the tables of differences, which replace ratios if a value has no logarithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answer, Answers
from wattwire.analysis.answering.block_models import usable_fit
from wattwire.analysis.dataset import Evidence, levels_of, same_level
from wattwire.analysis.responses import Response
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.report.parts import Column, Table
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "differences",
    {
        "why_shares": (
            "{response:capital} is above zero in {above:count} of {runs:plural run}; the "
            "differences of shares are in percentage points."
        ),
        "why": (
            "{response:capital}: {not_positive:count} of {runs:plural run} {are} zero or "
            "negative (minimum {minimum:number}{unit}, {run}). A ratio of geometric means "
            "needs the logarithm of every run, which these runs lack. To exclude them would "
            "bias the answer. The answers are therefore differences, by ranks if there are "
            "enough blocks."
        ),
        "is": "is",
        "are": "are",
        "title": "Answers as differences",
        "note": (
            "This table contains shares, and responses that are zero or negative in some runs. The "
            "difference of shares is that of arithmetic means within blocks, with a t interval. "
            "For other responses, it is the typical difference (Hodges–Lehmann) of runs that "
            "differ only in the factor, averaged per block or, if the campaign has one block and "
            "only one factor, as two samples; with too few blocks for the confidence level, it is "
            "that of the means, too. Differences are in the response's unit and belong to the same "
            "family as the ratios. “Different”: the interval excludes 0. A relative margin does "
            "not apply to a difference, so no result here is equivalent. A typical difference does "
            "not show whether the difference is larger in treatments with larger values. The last "
            "columns always give the difference of the means. Outliers shift this difference, and "
            "its interval is wide if large values scatter more than small ones."
        ),
        "ranks_of_blocks": "ranks of {blocks:plural block}",
        "ranks_of_samples": "ranks of two samples",
        "means": "means",
    },
)


def why(evidence: Evidence, response: Response) -> Phrase:
    """Return a sentence that explains why differences replace ratios for a response."""
    values = column(evidence.usable, response.column)
    known = int(np.isfinite(values).sum())
    if response.share:
        above = int(np.sum(values > 0))
        return PHRASES("why_shares", response=response.title, above=above, runs=known)
    not_positive = int(np.sum(values <= 0))
    least = int(np.nanargmin(values))
    return PHRASES(
        "why",
        response=response.title,
        not_positive=not_positive,
        runs=known,
        are=PHRASES("is" if not_positive == 1 else "are"),
        minimum=float(values[least]),
        unit=f" {response.unit}" if response.unit else "",
        run=evidence.usable["run"][least],
    )


def table(evidence: Evidence, answers: Answers) -> Table:
    """Return the table of answers that are differences, with differences of means."""
    rows = [
        _row(evidence, answers, answer, answer.result)
        for answer in answers.items
        if isinstance(answer.result, stats.Difference)
    ]
    return Table(
        "differences",
        PHRASES("title"),
        [
            Column("question", ""),
            Column("response", "response"),
            Column("factor", "factor"),
            Column("level", "level"),
            Column("baseline", "against"),
            Column("of", "baseline's mean", "measured"),
            Column("difference", "difference [interval]", "measured"),
            Column("unit", "unit"),
            Column("outcome", "outcome"),
            Column("how", "method"),
            Column("level_exact", "exact level"),
            Column("of_means", "means: difference [interval]", "measured"),
            Column("degrees", "df, means", "measured"),
            Column("runs", "runs", "measured"),
            Column("blocks", "blocks", "measured"),
        ],
        rows,
        PHRASES("note"),
    )


def _row(
    evidence: Evidence, answers: Answers, answer: Answer, result: stats.Difference
) -> dict[str, Any]:
    fit = usable_fit(evidence, answer.response, "plain")
    means: Any = fit
    if isinstance(fit, stats.Fit):
        means = stats.difference(fit, answer.factor, answer.level, answer.baseline, answers.level)
    levels = levels_of(evidence.usable, answer.factor)
    values = column(evidence.usable, answer.response.column)
    at_baseline = values[[same_level(run_level, answer.baseline) for run_level in levels]]
    return {
        "question": answer.question,
        "response": answer.response.title,
        "factor": words.factor_title(answer.factor),
        "level": evidence.title(answer.factor, answer.level),
        "baseline": evidence.title(answer.factor, answer.baseline),
        "of": float(np.nanmean(at_baseline)),
        "difference": result.interval,
        "unit": "share" if answer.response.share else answer.response.unit,
        "outcome": words.OUTCOMES[answers.outcome(answer)],
        "how": _how(result),
        "level_exact": words.confidence(result.interval.level),
        "of_means": means.interval if isinstance(means, stats.Difference) else means,
        "degrees": round(means.interval.degrees or 0)
        if isinstance(means, stats.Difference)
        else None,
        "runs": result.run_count,
        "blocks": result.block_count,
    }


def _how(result: stats.Difference) -> Phrase:
    if result.kind == "blocks":
        return PHRASES("ranks_of_blocks", blocks=result.block_count)
    if result.kind == "two samples":
        return PHRASES("ranks_of_samples")
    return PHRASES("means")
