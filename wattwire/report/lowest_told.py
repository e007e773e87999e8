"""Which of the alternatives is lowest, under the question that asks it, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment, levels_of
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.report.lowest import Choice, factors_of
from wattwire.report.parts import Text

NAMED_MAX = 4
"""So many alternatives, or levels, are named in a row."""
Medians = dict[tuple[Any, ...], float]


def sentences(
    evidence: Evidence, question: Mapping[str, Any], found: Sequence[Choice]
) -> list[Text]:
    """For each response of the question: the lowest alternative, and where each level is lowest.

    `found` are the choices of the study's alternatives; where they could not be compared, what
    was seen is told, and why nothing more. Empty where the question asks of other factors.
    """
    named = factors_of(evidence)
    if not named or not set(named) <= set(question.get("factors", [])):
        return []
    asked = {resolve(name, evidence.described) for name in question.get("responses", [])}
    told = []
    for choice in found:
        medians = _medians(evidence, choice, named)
        if choice.response not in asked or len(medians) < 2:
            continue
        placed = _ranked(choice) if choice.placed else _by_medians(evidence, choice, named, medians)
        told += [placed, *_won(evidence, choice.response, named, medians)]
    return [Text(one, "item") for one in told]


def _medians(evidence: Evidence, choice: Choice, named: Sequence[str]) -> Medians:
    """Median over the runs of each combination of the named factors that can be compared."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for frame in by_treatment(evidence, evidence.usable).values():
        key = tuple(levels_of(frame, name)[0] for name in named)
        if " ".join(map(evidence.title, named, key)) in choice.without:
            continue
        known = column(frame, choice.response.column)
        values.setdefault(key, []).extend(known[np.isfinite(known)].tolist())
    return {key: float(np.median(found)) for key, found in values.items() if found}


def _value(response: Response, value: float) -> str:
    return f"{words.number(value)} {response.unit}".rstrip()


def _ranked(choice: Choice) -> str:
    """The lowest, those as low or not told apart, and how far above it the others lie."""
    first, response = choice.placed[0], choice.response
    told = f"The lowest {response.title} is that of {first.title}: "
    told += f"{_value(response, first.typical)} (geometric mean)"
    near = [*choice.titles("equal"), *choice.titles("open")]
    if near:
        more = len(near) - NAMED_MAX
        names = near[:NAMED_MAX] + ([f"{words.count(more)} more"] if more > 0 else [])
        told += f"; not shown to lie above it: {words.listed(names)}"
    higher = [one for one in choice.placed if one.group == "higher"]
    if not higher:
        return f"{told}. No other is shown to lie above it."
    last = higher[-1]
    nearest = f"{words.number(higher[0].over_lowest)} times ({higher[0].title})"
    if len(higher) == 1:
        return f"{told}. One lies above it: {nearest}."
    return (
        f"{told}. {words.count(len(higher))} lie above it, from {nearest} to "
        f"{words.number(last.over_lowest)} times as much ({last.title}; at most "
        f"{words.number(last.at_most)})."
    )


def _by_medians(evidence: Evidence, choice: Choice, named: Sequence[str], medians: Medians) -> str:
    ordered = sorted(medians, key=lambda key: medians[key])
    low, high = (
        f"{' '.join(evidence.title(*one) for one in zip(named, key, strict=True))} "
        f"({_value(choice.response, medians[key])})"
        for key in (ordered[0], ordered[-1])
    )
    return (
        f"The lowest {choice.response.title} seen is that of {low}, the highest that of {high}. "
        f"Which of the {words.count(len(medians))} are really apart cannot be told yet: "
        f"{choice.why_not}."
    )


def _won(
    evidence: Evidence, response: Response, named: Sequence[str], medians: Medians
) -> list[str]:
    """For two factors: at how many levels of the one each level of the other is lowest."""
    if len(named) != 2:
        return []
    told = []
    for at, factor in enumerate(named):
        groups: dict[Any, list[tuple[Any, ...]]] = {}
        for key in medians:
            groups.setdefault(key[1 - at], []).append(key)
        whole = [keys for keys in groups.values() if len(keys) > 1]
        wins = Counter(min(keys, key=lambda key: medians[key])[at] for keys in whole)
        listed = [
            f"{evidence.title(factor, level)} at {words.count(count)}"
            for level, count in wins.most_common(NAMED_MAX)
        ]
        if listed:
            other = words.plural(len(whole), "level")
            told.append(
                f"By medians, of {other} of {words.factor_title(named[1 - at])} the lowest "
                f"{response.title} stands with {words.listed(listed)}."
            )
    return told
