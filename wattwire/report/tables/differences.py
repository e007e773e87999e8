"""The tables of answers that are differences, where a run has no logarithm and so no ratio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.contrasts import CONFIDENCE, Answer, Answers, usable_fit
from wattwire.analysis.dataset import Evidence, levels_of, same_level
from wattwire.analysis.interactions import AtLevel
from wattwire.analysis.responses import Response
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.report.parts import Column, Table

HOW = {
    "pairs": "ranks of {} pairs",
    "two samples": "ranks of two samples",
    "pair means": "means of {} pairs",
}


def why(evidence: Evidence, response: Response) -> str:
    """Return how many runs are not positive, the least of them, and what is answered instead."""
    values = column(evidence.usable, response.column)
    known = int(np.isfinite(values).sum())
    if response.share:
        above = words.count(int(np.sum(values > 0)))
        return (
            f"{response.title[:1].upper()}{response.title[1:]}: above zero in {above} of "
            f"{words.plural(known, 'run')}; differences of shares, in percentage points."
        )
    not_positive = int(np.sum(values <= 0))
    unit = f" {response.unit}" if response.unit else ""
    least = int(np.nanargmin(values))
    are = "is" if not_positive == 1 else "are"
    return (
        f"{response.title[:1].upper()}{response.title[1:]}: {words.count(not_positive)} of "
        f"{words.plural(known, 'run')} {are} zero or negative (minimum "
        f"{words.number(float(values[least]))}{unit}, {evidence.usable['run'][least]}). A ratio of "
        "geometric means needs each run's logarithm, which such a run does not have, and excluding "
        "the run would bias the answer. These are therefore differences, by ranks where there are "
        "enough runs."
    )


def table(evidence: Evidence, answers: Answers) -> Table:
    """Return the table of all answers that are differences, each with the difference of means."""
    rows = [
        _row(evidence, answers, answer, answer.result)
        for answer in answers.items
        if isinstance(answer.result, stats.Difference)
    ]
    return Table(
        "differences",
        "Answers as differences",
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
            Column("how", "how"),
            Column("level_exact", "exact level"),
            Column("of_means", "means: difference [interval]", "measured"),
            Column("degrees", "df, means", "measured"),
            Column("runs", "runs", "measured"),
            Column("blocks", "blocks", "measured"),
        ],
        rows,
        "For shares, and for responses with runs that have no logarithm. Estimand: the typical "
        "difference (Hodges–Lehmann) of runs that differ in that factor alone, in pairs inside "
        "blocks, or as two samples where nothing else varies; where there are too few for the "
        "level, the mean over those pairs, by t. In the response's unit, and of the same family as "
        "the ratios. “Different” excludes 0. A relative margin does not apply to a difference, so "
        "no result here is equivalent. A typical difference hides that small and large treatments "
        "may differ by different amounts. The difference of arithmetic means inside blocks, by t, "
        "is also shown: an outlier shifts it, and its pooled error assumes equal variance of small "
        "and large levels.",
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
        "how": HOW.get(result.kind, "means").format(result.strata),
        "level_exact": words.confidence(result.interval.level),
        "of_means": means.interval if isinstance(means, stats.Difference) else means,
        "degrees": int(means.interval.degrees or 0)
        if isinstance(means, stats.Difference)
        else None,
        "runs": result.run_count,
        "blocks": result.block_count,
    }


def by_level(evidence: Evidence, inner: Sequence[AtLevel]) -> Table:
    """Return the table of differences at each level of the other factors."""
    rows = [
        {
            "response": at_level.answer.response.title,
            "contrast": f"{evidence.title(at_level.answer.factor, at_level.answer.level)} − "
            f"{evidence.title(at_level.answer.factor, at_level.answer.baseline)}",
            "at": evidence.title(at_level.other, at_level.level),
            "difference": at_level.result.interval
            if isinstance(at_level.result, stats.Difference)
            else at_level.result,
            "unit": at_level.answer.response.unit,
        }
        for at_level in inner
    ]
    return Table(
        "differences-by-level",
        "Does the difference change with the other factors?",
        [
            Column("response", "response"),
            Column("contrast", "contrast"),
            Column("at", "at"),
            Column("difference", "difference [interval]", "measured"),
            Column("unit", "unit"),
        ],
        rows,
        f"Exploratory: separate intervals, each at {words.confidence(CONFIDENCE)}.",
    )
