"""Which of many alternatives to take: the lowest in each response, and those that are as low.

A study names the factors whose combinations are the alternatives (`answers.best_of`). The page's
first sentence then names the lowest and its equals, instead of one ratio of many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.contrasts import CONFIDENCE, Answers, fit_of, usable_fit
from wattwire.analysis.dataset import Evidence, levels_of
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.model.derived import column


@dataclass(frozen=True)
class Placed:
    """One alternative: its `group` is "lowest", "equal", "open" or "higher"."""

    title: str
    levels: tuple[Any, ...]
    typical: float
    over_lowest: float
    at_most: float
    group: str


@dataclass(frozen=True)
class Choice:
    """The alternatives of one response from the lowest up, or why they cannot be compared."""

    response: Response
    placed: tuple[Placed, ...]
    why_not: str = ""
    without: Mapping[str, str] = field(default_factory=dict)
    """Alternatives that are not ranked, since a run of theirs has no value: name to reason."""

    def titles(self, group: str) -> list[str]:
        """The alternatives of one group by name, from the lowest up."""
        return [one.title for one in self.placed if one.group == group]


def factors_of(evidence: Evidence) -> tuple[str, ...]:
    """The factors whose combinations are chosen among; empty where the study names none."""
    named = evidence.study.get("answers", {}).get("best_of", ())
    return tuple(name for name in named if name in evidence.varied)


def choices(evidence: Evidence, answers: Answers) -> list[Choice]:
    """One choice a response that some question asks of these factors, all held together."""
    factors = factors_of(evidence)
    responses = _responses(evidence, factors) if factors and evidence.usable.height else []
    level = stats.bonferroni(CONFIDENCE, max(1, len(responses)))
    return [_choice(evidence, answers, factors, response, level) for response in responses]


def _responses(evidence: Evidence, factors: Sequence[str]) -> list[Response]:
    asked = [
        resolve(name, evidence.described)
        for question in evidence.study.get("question", [])
        if set(factors) & set(question.get("factors", []))
        for name in question.get("responses", [])
    ]
    known = dict.fromkeys(one for one in asked if not one.share)
    return [response for response in known if measured(evidence.usable, response)]


def _choice(
    evidence: Evidence,
    answers: Answers,
    factors: Sequence[str],
    response: Response,
    level: float,
) -> Choice:
    left_out = _without_value(evidence, factors, response)
    without = {
        " ".join(map(evidence.title, factors, levels)): reason for levels, reason in left_out
    }
    own = {levels for levels, _ in left_out}
    had = list(zip(*(levels_of(evidence.usable, name) for name in factors), strict=True))
    frame = evidence.usable.filter(pl.Series([one not in own for one in had], dtype=pl.Boolean))
    fit = fit_of(evidence, frame, response) if own else usable_fit(evidence, response)
    found = stats.lowest_of(fit, factors, level) if isinstance(fit, stats.Fit) else fit
    if not isinstance(found, stats.Ranking):
        return Choice(response, (), str(found), without)
    noise = math.exp(answers.noise.get(response.column, 0.0))
    typical = _typical(evidence, frame, found.factors, response)
    # A factor of which one level alone is left has no place in the model, and one in the name.
    only = {name: levels_of(frame, name)[0] for name in factors} if own else {}
    placed = []
    for place, one in enumerate(found.alternatives):
        equal = answers.margin is not None and one.at_most <= 1 + answers.margin
        apart = not one.may_be_lowest and one.over_lowest > noise
        group = "lowest" if place == 0 else "equal" if equal else "higher" if apart else "open"
        at_levels = {**only, **dict(zip(found.factors, one.levels, strict=True))}
        title = " ".join(map(evidence.title, at_levels, at_levels.values()))
        of_runs = typical.get(tuple(map(evidence.word, found.factors, one.levels)), math.nan)
        placed.append(Placed(title, one.levels, of_runs, one.over_lowest, one.at_most, group))
    return Choice(response, tuple(placed), without=without)


def _without_value(
    evidence: Evidence, factors: Sequence[str], response: Response
) -> list[tuple[tuple[Any, ...], str]]:
    """The alternatives of which a run has no value to compare, each with the reason."""
    had = zip(*(levels_of(evidence.usable, name) for name in factors), strict=True)
    found = []
    for levels in dict.fromkeys(had):
        at = dict(zip(factors, levels, strict=True))
        reason = not_compared.why_not(evidence, evidence.usable, response, at)
        if reason:
            found.append((levels, str(reason)))
    return found


def _typical(
    evidence: Evidence, frame: pl.DataFrame, factors: Sequence[str], response: Response
) -> dict[tuple[str, ...], float]:
    """Geometric mean of each alternative's runs in `frame`, in the response's unit."""
    values = column(frame, response.column)
    sides = zip(*(levels_of(frame, name) for name in factors), strict=True)
    logs: dict[tuple[str, ...], list[float]] = {}
    for value, levels in zip(values.tolist(), sides, strict=True):
        if value > 0 and math.isfinite(value):
            logs.setdefault(tuple(map(evidence.word, factors, levels)), []).append(math.log(value))
    return {key: math.exp(float(np.mean(known))) for key, known in logs.items()}


# -- words -------------------------------------------------------------------------------------
