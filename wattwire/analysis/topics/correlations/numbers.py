"""Correlate the responses of each question with its correlates, over the treatments.

Points are medians of treatments, because runs of a treatment are not independent. System calls are
those of the runs that count them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.metrics_by_role import BOTH, is_measured, values_of
from wattwire.analysis.responses import Response, resolve
from wattwire.analysis.topics.energy.numbers import proportionality
from wattwire.model.metrics import METRICS, SYSTEM_CALLS
from wattwire.model.questions import Question
from wattwire.stats import association
from wattwire.stats.association import Association

TREATMENTS_MIN = 4
COUNTED = tuple(name for name, metric in METRICS.items() if metric.needs == SYSTEM_CALLS)
POSITIVE, NEGATIVE, NONE_DETECTED = "positive", "negative", "none detected"
Medians = Mapping[tuple[str, ...], float]


@dataclass(frozen=True)
class Correlation:
    """The titles of a response and a correlate, and how both are related over `treatments`.

    `reading` is the conclusion from the exponent of their power law. Without a coefficient or an
    exponent, there is only the `reason`.
    """

    response: str
    correlate: str
    treatments: int = 0
    coefficient: Association | None = None
    exponent: stats.Interval | None = None
    reading: str = ""
    reason: str = ""

    @property
    def interval(self) -> stats.Interval | None:
        """The interval of the coefficient; None without an interval."""
        interval = self.coefficient.interval if self.coefficient else None
        return interval if isinstance(interval, stats.Interval) else None

    @property
    def conclusion(self) -> str:
        """POSITIVE, NEGATIVE or NONE_DETECTED; "" without a coefficient."""
        if self.coefficient is None:
            return ""
        interval = self.interval
        is_detected = interval.excludes(0.0) if interval else self.coefficient.p < 0.05
        if not is_detected:
            return NONE_DETECTED
        return POSITIVE if self.coefficient.estimate > 0 else NEGATIVE


@dataclass(frozen=True)
class Correlated:
    """A response of the question and its correlations; `is_measured` is false if no run has it."""

    response: str
    is_energy: bool
    is_measured: bool
    correlations: tuple[Correlation, ...] = ()


@dataclass(frozen=True)
class QuestionCorrelations:
    """The correlations of a question's responses with its correlates.

    `number` is the place of the question in the study, from 1 on. `unmeasured` has the titles of
    correlates that no run has, of which some are counts of system calls if `is_countable`. Both are
    empty if no response was measured.
    """

    number: int
    responses: tuple[Correlated, ...] = ()
    unmeasured: tuple[str, ...] = ()
    is_countable: bool = False
    has_correlates: bool = False
    """Whether a response and a correlate were measured."""


@dataclass(frozen=True)
class Correlations:
    """The correlations of the questions that have correlates."""

    questions: tuple[QuestionCorrelations, ...] = ()


def correlations(evidence: Evidence) -> Correlations:
    """Return the correlations of each question; none without a valid run."""
    questions = evidence.study.questions if evidence.usable.height else ()
    return Correlations(
        tuple(
            of_question(evidence, question, number)
            for number, question in enumerate(questions, 1)
            if question.beside
        )
    )


def of_question(evidence: Evidence, question: Question, number: int) -> QuestionCorrelations:
    """Return the correlations of each response of a question."""
    correlates = [resolve(name, evidence.described) for name in question.beside]
    medians = {correlate: _medians(evidence, correlate) for correlate in correlates}
    known = {correlate: points for correlate, points in medians.items() if points}
    responses = tuple(
        _correlated(evidence, resolve(name, evidence.described), known)
        for name in dict.fromkeys(question.responses)
    )
    if not any(response.is_measured for response in responses):
        return QuestionCorrelations(number, responses)
    absent = [correlate for correlate in correlates if correlate not in known]
    return QuestionCorrelations(
        number,
        responses,
        tuple(correlate.title for correlate in absent),
        any(correlate.column in COUNTED for correlate in absent),
        len(absent) < len(correlates),
    )


def _correlated(
    evidence: Evidence, response: Response, correlates: Mapping[Response, Medians]
) -> Correlated:
    if not is_measured(evidence, response, BOTH):
        return Correlated(response.title, response.energy, False)
    of_response = _medians(evidence, response)
    found = (
        _correlation((response.title, correlate.title), of_response, points)
        for correlate, points in correlates.items()
        if correlate != response
    )
    return Correlated(response.title, response.energy, True, tuple(found))


def _correlation(titles: tuple[str, str], responses: Medians, correlates: Medians) -> Correlation:
    shared = list(_shared(responses, correlates))
    if len(shared) < TREATMENTS_MIN:
        too_few = stats.TooFew(len(shared), TREATMENTS_MIN, "treatments with both")
        return Correlation(*titles, reason=str(too_few))
    y = np.array([responses[key] for key in shared])
    x = np.array([correlates[key] for key in shared])
    spearman, exponent = association.spearman(x, y), association.exponent(x, y)
    if not isinstance(spearman, Association):
        return Correlation(*titles, reason=str(spearman))
    if not isinstance(exponent, stats.Interval):
        return Correlation(*titles, reason=str(exponent))
    return Correlation(*titles, len(shared), spearman, exponent, proportionality(exponent))


def _shared(responses: Medians, correlates: Medians) -> Iterator[tuple[str, ...]]:
    """Yield the treatments with positive values of both."""
    for key, value in responses.items():
        if key in correlates and value > 0 and correlates[key] > 0:
            yield key


def _medians(evidence: Evidence, response: Response) -> Medians:
    """Return each treatment's median over design runs, or over runs that count system calls."""
    frames: Sequence[pl.DataFrame] = (evidence.usable, evidence.traced)
    of_frames = (_treatment_medians(evidence, frame, response) for frame in frames)
    return next((medians for medians in of_frames if medians), {})


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
