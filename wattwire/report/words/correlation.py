"""Sentences on the correlations of a question's responses with their correlates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.metrics_by_role import BOTH, NOT_MEASURED, is_measured, values_of
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.metrics import METRICS, SYSTEM_CALLS
from wattwire.model.questions import Question
from wattwire.report.parts import Text
from wattwire.report.words.phrases import Phrase, Phrases
from wattwire.stats import association

PHRASES = Phrases(
    "correlation",
    {
        # Readings of the exponent of a power law.
        "grows": "grows, but not proportionally",
        "falls": "falls",
        "not_in_proportion": "not proportional",
        "in_proportion": "about proportional",
        "cannot_tell": "cannot tell",
        # Sentences.
        "claim": (
            "{claim}: Spearman's ρ {rho:number} ({range}) over {treatments:plural treatment}; "
            "power-law exponent {exponent:number} ({low:number} to {high:number}): {reading}."
        ),
        "positive": "{response:capital} correlates positively with {correlate}",
        "negative": "{response:capital} correlates negatively with {correlate}",
        "none_detected": "No association between {response} and {correlate} was detected",
        "interval": "{low:number} to {high:number}",
        "p_value": "{p:p}",
        "not_computable": "{response:capital} and {correlate}: {reason}.",
        "treatments_with_both": "treatments with both",
        "response_not_measured": "{response:capital}: {reason}.",
        "no_energy_meter": "not available, because no meter measured energy",
        "correlates_not_measured": "{correlates:capital}: not measured.",
        "correlates_not_counted": (
            "{correlates:capital}: not measured. Set plan.syscall_runs = 1 to count system "
            "calls in separate runs."
        ),
        "how_to_read": (
            "Each point is the median of a treatment. Each interval is a separate 95 % "
            "confidence interval (exploratory). Correlation does not imply proportionality or "
            "causation."
        ),
    },
)
Medians = dict[tuple[str, ...], float]
TREATMENTS_MIN = 4
COUNTED = tuple(name for name, metric in METRICS.items() if metric.needs == SYSTEM_CALLS)

PROPORTION = (0.8, 1.2)
"""Range that must contain the exponent's interval for the conclusion "about proportional"."""


def sentences(evidence: Evidence, question: Question) -> list[Text]:
    """Return a sentence for each response and correlate, or an empty list without correlates.

    The points are medians of treatments, because runs of a treatment are not independent.
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
            reason = PHRASES("no_energy_meter") if response.energy else NOT_MEASURED
            texts.append(PHRASES("response_not_measured", response=response.title, reason=reason))
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
        texts.append(PHRASES("how_to_read"))
    return [Text(text, "item") for text in texts]


def _unmeasured(absent: Sequence[Response]) -> Phrase:
    titles = words.listed([response.title for response in absent])
    countable = any(response.column in COUNTED for response in absent)
    return PHRASES(
        "correlates_not_counted" if countable else "correlates_not_measured", correlates=titles
    )


def _sentence(
    response: Response, response_medians: Medians, correlate: Response, correlate_medians: Medians
) -> Phrase:
    shared = [
        key
        for key in response_medians
        if key in correlate_medians and response_medians[key] > 0 and correlate_medians[key] > 0
    ]
    titles = response.title, correlate.title
    if len(shared) < TREATMENTS_MIN:
        too_few = stats.TooFew(len(shared), TREATMENTS_MIN, PHRASES("treatments_with_both"))
        return _not_computable(titles, str(too_few))
    y = np.array([response_medians[key] for key in shared])
    x = np.array([correlate_medians[key] for key in shared])
    spearman, exponent = association.spearman(x, y), association.exponent(x, y)
    if not isinstance(spearman, association.Association) or not isinstance(
        exponent, stats.Interval
    ):
        reason = spearman if not isinstance(spearman, association.Association) else exponent
        return _not_computable(titles, str(reason))
    interval = spearman.interval
    if isinstance(interval, stats.Interval):
        is_significant = interval.excludes(0.0)
        range_text = PHRASES("interval", low=interval.low, high=interval.high)
    else:
        is_significant, range_text = spearman.p < 0.05, PHRASES("p_value", p=spearman.p)
    claim = PHRASES(
        ("positive" if spearman.estimate > 0 else "negative")
        if is_significant
        else "none_detected",
        response=response.title,
        correlate=correlate.title,
    )
    return PHRASES(
        "claim",
        claim=claim,
        rho=spearman.estimate,
        range=range_text,
        treatments=len(shared),
        exponent=exponent.estimate,
        low=exponent.low,
        high=exponent.high,
        reading=proportionality(exponent),
    )


def _not_computable(titles: tuple[str, str], reason: str) -> Phrase:
    return PHRASES("not_computable", response=titles[0], correlate=titles[1], reason=reason)


def _medians(evidence: Evidence, response: Response) -> Medians:
    """Return each treatment's median over design runs, or over runs that count system calls."""
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


def proportionality(power: Any) -> Phrase:
    """Return the conclusion from the interval of an exponent, or "" if there is no interval."""
    if not isinstance(power, stats.Interval):
        return Phrase()
    if power.excludes(1.0):
        if power.excludes(0.0):
            return PHRASES("grows" if power.estimate > 0 else "falls")
        return PHRASES("not_in_proportion")
    return PHRASES("in_proportion" if power.within(*PROPORTION) else "cannot_tell")
