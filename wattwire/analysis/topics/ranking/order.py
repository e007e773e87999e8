"""Order several alternatives in each response: the best, and those equivalent to it.

The study's `answers.best_of` names factors; each combination of their levels is an alternative. The
page's first sentence names the best alternative and its equivalents, instead of many ratios. The
best alternative is the lowest, and the highest in a response of which more is better.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.answering.block_models import fit_of, usable_fit
from wattwire.analysis.answering.confidence import interval_confidence
from wattwire.analysis.carried import saturated
from wattwire.analysis.dataset import Evidence, by_treatment, levels_in, levels_of
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.analysis.topics.ranking.choice import (
    EQUAL,
    HIGHER,
    LOWEST,
    OPEN,
    Choice,
    Exchange,
    Placed,
    Reversal,
    Saturated,
)

NO_DIRECTION = (
    "whether a higher or a lower value is better is unknown; import again with --higher-is-better "
    "or --lower-is-better"
)


def factors_of(evidence: Evidence) -> tuple[str, ...]:
    """Return the factors whose combinations are the alternatives; empty if the study names none."""
    requested_factors = evidence.study.answers.best_of
    return tuple(name for name in requested_factors if name in evidence.varied)


def choices(evidence: Evidence, answers: Answers) -> list[Choice]:
    """Return one choice per response that a question about these factors names.

    The confidence level is Bonferroni-corrected over all choices.
    """
    factors = factors_of(evidence)
    responses = _responses(evidence, factors) if factors and evidence.usable.height else []
    confidence = stats.bonferroni(interval_confidence(evidence), max(1, len(responses)))
    return [_choice(evidence, answers, factors, response, confidence) for response in responses]


def _responses(evidence: Evidence, factors: Sequence[str]) -> list[Response]:
    requested_responses = [
        resolve(name, evidence.described)
        for question in evidence.study.questions
        if set(factors) & set(question.factors)
        for name in question.responses
    ]
    with_ratio = dict.fromkeys(response for response in requested_responses if not response.share)
    return [response for response in with_ratio if measured(evidence.usable, response)]


def _choice(
    evidence: Evidence,
    answers: Answers,
    factors: Sequence[str],
    response: Response,
    level: float,
) -> Choice:
    excluded = _excluded_alternatives(evidence, factors, response)
    without = {
        " ".join(map(evidence.title, factors, levels)): reason for levels, reason in excluded
    }
    excluded_levels = {levels for levels, _ in excluded}
    levels_by_run = levels_in(evidence.usable, factors)
    frame = evidence.usable.filter(
        pl.Series([levels not in excluded_levels for levels in levels_by_run], dtype=pl.Boolean)
    )
    fit = fit_of(evidence, frame, response) if excluded_levels else usable_fit(evidence, response)
    if isinstance(fit, stats.Fit) and response.more_is_better:
        fit = replace(fit, coefficients=-fit.coefficients)  # the lowest reciprocal is the best
    if not response.direction:
        return Choice(response, (), NO_DIRECTION, without)
    ranking = stats.lowest_of(fit, factors, level) if isinstance(fit, stats.Fit) else fit
    if not (isinstance(ranking, stats.Ranking) and isinstance(fit, stats.Fit)):
        return Choice(response, (), str(ranking), without)
    noise = math.exp(answers.noise.get(response.column, 0.0))
    # A factor with a single remaining level is not in the model, but its level is part of the name.
    single_levels = {name: levels_of(frame, name)[0] for name in factors} if excluded_levels else {}
    placed = list(_placed(evidence, answers.margin, frame, response, ranking, single_levels, noise))
    reversals = [
        Reversal(
            name,
            at_level,
            _title(evidence, {**single_levels, **levels}),
            ratio,
            evidence.title(name, at_level),
        )
        for name, at_level, levels, ratio in _lower_at_levels(fit, ranking)
        if ratio > noise
    ]
    titles = [at.title for at in placed]
    return Choice(
        response, tuple(placed), without=without, reversals=tuple(reversals),
        exchanges={
            name: tuple(_exchanges(evidence, fit, ranking, titles, name, noise))
            for name in _other_factors(evidence, factors, response)
            if name in fit.factors and fit.kind == "treatments"
        },
        saturated=_saturated(evidence, frame, factors, response), degrees=ranking.degrees,
    )  # fmt: skip


def _placed(
    evidence: Evidence,
    margin: float | None,
    frame: pl.DataFrame,
    response: Response,
    ranking: stats.Ranking,
    single_levels: Mapping[str, Any],
    noise: float,
) -> Iterator[Placed]:
    """Yield the alternatives of a ranking, best first, with their means over the runs of `frame`.

    Ratios up to `noise` are not significant.
    """
    typical = _geometric_means(evidence, frame, ranking.factors, response)
    treatments = _treatment_counts(evidence, frame, ranking.factors)
    for rank, alternative in enumerate(ranking.alternatives):
        is_equal = margin is not None and alternative.at_most <= 1 + margin
        is_higher = not alternative.may_be_lowest and alternative.over_lowest > noise
        at_levels = {**single_levels, **dict(zip(ranking.factors, alternative.levels, strict=True))}
        level_words = tuple(map(evidence.word, ranking.factors, alternative.levels))
        yield Placed(
            _title(evidence, at_levels),
            alternative.levels,
            typical.get(level_words, math.nan),
            alternative.over_lowest,
            alternative.at_most,
            LOWEST if rank == 0 else EQUAL if is_equal else HIGHER if is_higher else OPEN,
            treatments[level_words],
        )


def _lower_at_levels(
    fit: stats.Fit, ranking: stats.Ranking
) -> Iterator[tuple[str, Any, dict[str, Any], float]]:
    """Yield each level of another factor at which the lowest alternative is not the lowest.

    It comes with the levels of the lowest alternative there, and with the ratio to it. The
    confidence level of the ranking is Bonferroni-corrected over all these levels.
    """
    others = [
        (name, level)
        for name, levels in fit.factors.items()
        if name not in ranking.factors
        for level in levels
    ]
    confidence = stats.bonferroni(ranking.level, max(1, len(others)))
    best = ranking.alternatives[0].levels
    for name, level in others:
        lower = stats.lower_at(fit, ranking.factors, best, (name, level), confidence)
        if lower:
            levels, ratio = lower[0]
            yield name, level, dict(zip(ranking.factors, levels, strict=True)), ratio


def _other_factors(
    evidence: Evidence, factors: Sequence[str], response: Response
) -> dict[str, None]:
    """Return the factors beside `factors` of the questions about a response and `factors`."""
    return dict.fromkeys(
        name
        for question in evidence.study.questions
        if set(factors) < set(question.factors)
        and response in (resolve(name, evidence.described) for name in question.responses)
        for name in question.factors
        if name not in factors
    )


def _exchanges(
    evidence: Evidence,
    fit: stats.Fit,
    ranking: stats.Ranking,
    titles: Sequence[str],
    factor: str,
    noise: float,
) -> Iterator[Exchange]:
    """Yield the pairs of alternatives that change places between two levels of a factor.

    `titles` are those of the ranking's alternatives. Both orders are significant, and both ratios
    are above the A/A `noise`. The confidence level of the ranking is Bonferroni-corrected over all
    ordered pairs and levels.
    """
    places = {at.levels: place for place, at in enumerate(ranking.alternatives)}
    levels = fit.factors[factor]
    confidence = stats.bonferroni(ranking.level, len(levels) * len(places))
    better: dict[tuple[int, int], list[tuple[float, Any]]] = {}
    for level in levels:
        for worse, place in places.items():
            lower = stats.lower_at(fit, ranking.factors, worse, (factor, level), confidence)
            for lower_levels, ratio in lower:
                if ratio > noise:
                    better.setdefault((places[lower_levels], place), []).append((ratio, level))
    found = []
    for (first, second), at_levels in better.items():
        if first < second and (second, first) in better:
            ratio, level = max(at_levels, key=lambda pair: pair[0])
            other_ratio, other_level = max(better[second, first], key=lambda pair: pair[0])
            found.append(
                Exchange(
                    titles[first],
                    titles[second],
                    level,
                    ratio,
                    other_level,
                    other_ratio,
                    evidence.title(factor, level),
                    evidence.title(factor, other_level),
                )
            )
    yield from sorted(found, key=lambda exchange: -exchange.ratio * exchange.other_ratio)


def _title(evidence: Evidence, levels: Mapping[str, Any]) -> str:
    return " ".join(map(evidence.title, levels, levels.values()))


def _excluded_alternatives(
    evidence: Evidence, factors: Sequence[str], response: Response
) -> list[tuple[tuple[Any, ...], str]]:
    """Return the levels of each alternative that is not comparable, with the reason.

    An alternative is not comparable if one of its runs has no comparable value. Saturation makes
    only latencies and costs per message incomparable. The throughput of a saturated run is what it
    delivered, so it has a rank, and so do its memory and its CPU time.
    """
    levels_by_run = levels_in(evidence.usable, factors)
    excluded = []
    for levels in dict.fromkeys(levels_by_run):
        level_by_factor = dict(zip(factors, levels, strict=True))
        not_comparable = not_compared.why_emulated(
            evidence, evidence.usable, response, level_by_factor
        ) or not_compared.why_not(evidence, evidence.usable, response, level_by_factor)
        if not_comparable:
            excluded.append((levels, str(not_comparable)))
    return excluded


def _saturated(
    evidence: Evidence, frame: pl.DataFrame, factors: Sequence[str], response: Response
) -> tuple[Saturated, ...]:
    """Return the saturated runs and all runs in `frame` of each alternative with such runs."""
    titles = [
        " ".join(map(evidence.title, factors, levels)) for levels in levels_in(frame, factors)
    ]
    all_runs = Counter(titles)
    is_left_out = not_compared.left_out(evidence, frame, response)
    flags = (saturated(frame, response.column) & ~is_left_out).tolist()
    counts = Counter(title for title, flag in zip(titles, flags, strict=True) if flag)
    return tuple(Saturated(title, runs, all_runs[title]) for title, runs in counts.items())


def _treatment_counts(
    evidence: Evidence, frame: pl.DataFrame, factors: Sequence[str]
) -> Counter[tuple[str, ...]]:
    """Return the number of treatments of each alternative."""
    positions = [evidence.varied.index(name) for name in factors]
    return Counter(
        tuple(key[position] for position in positions) for key in by_treatment(evidence, frame)
    )


def _geometric_means(
    evidence: Evidence, frame: pl.DataFrame, factors: Sequence[str], response: Response
) -> dict[tuple[str, ...], float]:
    """Return the geometric mean of each alternative over its runs, in the response's unit."""
    values = not_compared.comparable_values(evidence, frame, response)
    levels_by_run = levels_in(frame, factors)
    logs: dict[tuple[str, ...], list[float]] = {}
    for value, levels in zip(values.tolist(), levels_by_run, strict=True):
        if value > 0 and math.isfinite(value):
            logs.setdefault(tuple(map(evidence.word, factors, levels)), []).append(math.log(value))
    return {key: math.exp(float(np.mean(log_values))) for key, log_values in logs.items()}
