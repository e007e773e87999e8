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
from wattwire.analysis.dataset import Evidence, levels_of, same_level
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.report.parts import Column, Table

NAMED_MAX = 6
"""Up to so many alternatives a sentence names one by one."""
CONDITIONS = ("payload_bytes", "literal", "clients", "rate_hz", "interval_s")


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


def headline(evidence: Evidence, found: Sequence[Choice]) -> str:
    """One sentence over all responses; empty where none of them could be compared."""
    known = [one for one in found if one.placed]
    if not known:
        return ""
    parts = []
    before = ""
    for one in known:
        leader = one.placed[0].title
        had = "the lowest" if leader == before else f"{leader} had the lowest"
        parts.append(f"{had} {one.response.title} ({_beside(evidence, one)})")
        before = leader
    return (
        f"{_conditions(evidence)}of {words.plural(len(known[0].placed), 'alternative')}, "
        f"{words.listed(parts)}."
    )


def _conditions(evidence: Evidence) -> str:
    """What all runs share of what a reader would ask for: payload, clients, rate."""
    fixed = evidence.study.get("fixed", {})
    closed = fixed.get("loop") == "closed"
    told = []
    for name in CONDITIONS:
        useless = closed and name in ("rate_hz", "interval_s")
        hidden = name == "payload_bytes" and fixed.get("literal")
        if name in evidence.varied or fixed.get(name) in (None, "") or useless or hidden:
            continue
        value = fixed[name]
        told.append(f"“{value}”" if name == "literal" else evidence.title(name, value))
    return f"With {words.listed(told)}, " if told else "By these runs, "


def _beside(evidence: Evidence, choice: Choice) -> str:
    lowest = choice.placed[0]
    unit = f" {choice.response.unit}" if choice.response.unit else ""
    told = [f"{words.number(lowest.typical)}{unit}"]
    margin = evidence.study.get("answers", {}).get("margin")
    if margin is not None:
        equal = _named(choice.titles("equal")) or "none shown"
        told.append(f"equal within {words.percent(margin)}: {equal}")
    if choice.titles("open"):
        told.append(f"not told apart from it: {_named(choice.titles('open'))}")
    placed = [one for one in choice.placed if one.group == "higher"]
    higher = [one.over_lowest for one in placed]
    if 0 < len(higher) <= NAMED_MAX:
        each = [f"{one.title} {words.number(one.over_lowest)}" for one in placed]
        told.append(f"times as much: {words.listed(each)}")
    elif higher:
        ends = list(dict.fromkeys(words.number(one) for one in (min(higher), max(higher))))
        whose = "every other" if len(told) == 1 else f"{len(higher)} more"
        told.append(f"{whose}: {' to '.join(ends)} times as much")
    return "; ".join(told)


def _named(titles: Sequence[str]) -> str:
    """Names in a row; of many the first ones, and how many more there are."""
    shown = list(titles[:NAMED_MAX])
    more = len(titles) - len(shown)
    return words.listed([*shown, f"{more} more"] if more else shown)


def notes(evidence: Evidence, found: Sequence[Choice]) -> list[str]:
    """What the first sentence rests on, and what has no place in it."""
    known = [one for one in found if one.placed]
    told = [f"Lowest {one.response.title}: {one.why_not}." for one in found if one.why_not]
    if known:
        told.append(
            "Who is lowest, who may be and who is equal holds for "
            f"{words.listed([one.response.title for one in known])} together at "
            f"{words.confidence(CONFIDENCE)}: multiple comparisons with the best (Hsu 1984), one-"
            "sided t limits of each against all others, Bonferroni. “Equal” is whose upper limit "
            "over the truly lowest one lies within the margin; “not told apart” may be the lowest."
        )
    missing = _unmeasured(evidence) if found else []
    if missing:
        told.append(f"Without a usable run: {_named(missing)}.")
    return told


def _unmeasured(evidence: Evidence) -> list[str]:
    """Alternatives of the design of which no run can be used."""
    factors = factors_of(evidence)
    usable = list(zip(*(levels_of(evidence.usable, name) for name in factors), strict=True))
    lacking: dict[str, None] = {}
    for entry in evidence.designed:
        levels = {**(entry.get("levels") or {}), **(entry.get("treatment") or {})}
        own = [levels.get(name) for name in factors]
        if not any(all(map(same_level, own, one)) for one in usable):
            named = zip(factors, own, strict=True)
            lacking[" ".join(evidence.title(name, value) for name, value in named)] = None
    return list(lacking)


def table(evidence: Evidence, found: Sequence[Choice]) -> Table | None:
    """Every alternative in every response, from the lowest up."""
    words_of = {
        "lowest": "lowest", "equal": "equal within the margin",
        "open": "not told apart", "higher": "higher",
    }  # fmt: skip
    rows = [
        {
            "response": choice.response.title,
            "alternative": one.title,
            "typical": one.typical,
            "unit": choice.response.unit,
            "over": one.over_lowest,
            "at_most": one.at_most,
            "group": words_of[one.group],
        }
        for choice in found
        for one in choice.placed
    ]
    if not rows:
        return None
    rows += [
        {"response": choice.response.title, "alternative": name, "group": reason}
        for choice in found
        for name, reason in choice.without.items()
    ]
    named = words.listed([words.factor_title(name) for name in factors_of(evidence)])
    return Table(
        "lowest",
        f"Which {named} is lowest",
        [
            Column("response", "response"),
            Column("alternative", named),
            Column("typical", "geometric mean", "measured"),
            Column("unit", "unit"),
            Column("over", "over the lowest", "measured"),
            Column("at_most", "at most", "measured"),
            Column("group", "outcome"),
        ],
        rows,
        "“At most”: upper limit of the ratio to the truly lowest one; all limits and outcomes hold "
        f"together at {words.confidence(CONFIDENCE)}. The smallest estimate need not be the truly "
        "lowest one: “not told apart” may be it as well.",
    )
