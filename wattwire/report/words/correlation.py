"""Sentences on how a question's responses correlate with the quantities that it names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.metrics_by_role import BOTH, NOT_MEASURED, capital, is_measured, values_of
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.questions import Question
from wattwire.report.parts import Text
from wattwire.report.sections import syscalls
from wattwire.report.sections.proportion import reading
from wattwire.stats import association

Medians = dict[tuple[str, ...], float]
TREATMENTS_MIN = 4
COUNTED = ("syscalls_per_message", *syscalls.FIGURES)


def sentences(evidence: Evidence, question: Question) -> list[Text]:
    """Return a sentence for each response and each of its correlates; empty without correlates.

    Points are medians of treatments; runs of one treatment are no further points.
    """
    correlates = [resolve(name, evidence.described) for name in question.beside]
    if not correlates or evidence.usable.height == 0:
        return []
    medians = {correlate: _medians(evidence, correlate) for correlate in correlates}
    absent = [correlate for correlate, points in medians.items() if not points]
    texts, measured_any = [], False
    for name in dict.fromkeys(question.responses):
        response = resolve(name, evidence.described)
        if not is_measured(evidence, response, BOTH):
            energy = "not available: no meter measured energy"
            reason = energy if response.energy else NOT_MEASURED
            texts.append(f"{capital(response.title)}: {reason}.")
            continue
        measured_any = True
        available = [
            correlate
            for correlate in correlates
            if correlate != response and correlate not in absent
        ]
        response_medians = _medians(evidence, response)
        texts += [
            _sentence(response, response_medians, correlate, medians[correlate])
            for correlate in available
        ]
    if measured_any and absent:
        texts.append(_unmeasured(absent))
    if measured_any and len(absent) < len(correlates):
        texts.append(
            "Points are treatment medians. Each interval is a separate 95 % confidence interval "
            "(exploratory). Correlation implies neither proportionality nor causation."
        )
    return [Text(text, "item") for text in texts]


def _unmeasured(absent: Sequence[Response]) -> str:
    titles = words.listed([response.title for response in absent])
    countable = any(response.column in COUNTED for response in absent)
    advice = "; plan.syscall_runs = 1 counts system calls, in separate runs" if countable else ""
    return f"{capital(titles)}: not measured{advice}."


def _sentence(
    response: Response, response_medians: Medians, correlate: Response, correlate_medians: Medians
) -> str:
    shared = [
        key
        for key in response_medians
        if key in correlate_medians and response_medians[key] > 0 and correlate_medians[key] > 0
    ]
    if len(shared) < TREATMENTS_MIN:
        return (
            f"{capital(response.title)} and {correlate.title}: "
            f"{stats.TooFew(len(shared), TREATMENTS_MIN, 'treatments with both')}."
        )
    y = np.array([response_medians[key] for key in shared])
    x = np.array([correlate_medians[key] for key in shared])
    spearman, exponent = association.spearman(x, y), association.exponent(x, y)
    if not isinstance(spearman, association.Association) or not isinstance(
        exponent, stats.Interval
    ):
        reason = spearman if not isinstance(spearman, association.Association) else exponent
        return f"{capital(response.title)} and {correlate.title}: {reason}."
    interval = spearman.interval
    if isinstance(interval, stats.Interval):
        is_significant = interval.excludes(0.0)
        range_text = f"{words.number(interval.low)} to {words.number(interval.high)}"
    else:
        is_significant, range_text = spearman.p < 0.05, words.p_equals(spearman.p)
    if is_significant:
        sign = "positively" if spearman.estimate > 0 else "negatively"
        claim = f"{capital(response.title)} correlates {sign} with {correlate.title}"
    else:
        claim = f"No association between {response.title} and {correlate.title} was detected"
    return (
        f"{claim}: Spearman's ρ {words.number(spearman.estimate)} ({range_text}) over "
        f"{words.plural(len(shared), 'treatment')}; power-law exponent "
        f"{words.number(exponent.estimate)} ({words.number(exponent.low)} to "
        f"{words.number(exponent.high)}): {reading(exponent)}."
    )


def _medians(evidence: Evidence, response: Response) -> Medians:
    """Return each treatment's median, from runs of the design, else from runs that count calls."""
    for frame in (evidence.usable, evidence.traced):
        medians = _treatment_medians(evidence, frame, response)
        if medians:
            return medians
    return {}


def _treatment_medians(evidence: Evidence, frame: pl.DataFrame, response: Response) -> Medians:
    if frame.height == 0:
        return {}
    medians = {}
    for key, runs in by_treatment(evidence, frame).items():
        values = values_of(evidence, runs, response, BOTH)
        values = values[np.isfinite(values)]
        if values.size:
            medians[key] = float(np.median(values))
    return medians
