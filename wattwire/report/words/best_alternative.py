"""Which of the alternatives is lowest, in sentences: in the first line, and under the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wattwire.analysis.best_alternative import Choice, factors_of
from wattwire.analysis.contrasts import CONFIDENCE
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of, same_level
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.derived import column
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


# -- the page's first sentence ------------------------------------------------------------------


HEADLINE_NAMED_MAX = 6
"""Up to so many alternatives a sentence names one by one."""
CONDITIONS = ("payload_bytes", "literal", "clients", "rate_hz", "interval_s")


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
    if 0 < len(higher) <= HEADLINE_NAMED_MAX:
        each = [f"{one.title} {words.number(one.over_lowest)}" for one in placed]
        told.append(f"times as much: {words.listed(each)}")
    elif higher:
        ends = list(dict.fromkeys(words.number(one) for one in (min(higher), max(higher))))
        whose = "every other" if len(told) == 1 else f"{len(higher)} more"
        told.append(f"{whose}: {' to '.join(ends)} times as much")
    return "; ".join(told)


def _named(titles: Sequence[str]) -> str:
    """Names in a row; of many the first ones, and how many more there are."""
    shown = list(titles[:HEADLINE_NAMED_MAX])
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
