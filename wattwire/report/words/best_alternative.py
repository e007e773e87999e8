"""Sentences on which alternative is lowest: the first sentence, and those under a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from wattwire.analysis.best_alternative import Choice, factors_of
from wattwire.analysis.contrasts import CONFIDENCE
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of, same_level
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.questions import Question
from wattwire.report.parts import Text

NAMED_MAX = 4
"""Most alternatives, or levels, that a list names."""
Medians = dict[tuple[Any, ...], float]


def sentences(evidence: Evidence, question: Question, found: Sequence[Choice]) -> list[Text]:
    """Return for each response of the question the lowest alternative, and where levels are lowest.

    `found` are the choices of the study's alternatives; where these could not be compared, the
    sentence says what was seen, and why nothing more can be said. Empty where the question is
    about other factors.
    """
    factors = factors_of(evidence)
    if not factors or not set(factors) <= set(question.factors):
        return []
    responses = {resolve(name, evidence.described) for name in question.responses}
    texts = []
    for choice in found:
        medians = _medians(evidence, choice, factors)
        if choice.response not in responses or len(medians) < 2:
            continue
        text = (
            _ranked_sentence(choice)
            if choice.placed
            else _medians_sentence(evidence, choice, factors, medians)
        )
        texts += [text, *_wins_by_level(evidence, choice.response, factors, medians)]
    return [Text(text, "item") for text in texts]


def _medians(evidence: Evidence, choice: Choice, factors: Sequence[str]) -> Medians:
    """Return the median over runs of each combination of the factors that can be compared."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for frame in by_treatment(evidence, evidence.usable).values():
        key = tuple(levels_of(frame, name)[0] for name in factors)
        if " ".join(map(evidence.title, factors, key)) in choice.without:
            continue
        known = column(frame, choice.response.column)
        values.setdefault(key, []).extend(known[np.isfinite(known)].tolist())
    return {key: float(np.median(run_values)) for key, run_values in values.items() if run_values}


def _value(response: Response, value: float) -> str:
    return f"{words.number(value)} {response.unit}".rstrip()


def _ranked_sentence(choice: Choice) -> str:
    """Return a sentence on the lowest, those not shown to be higher, and how high the rest are."""
    first, response = choice.placed[0], choice.response
    text = f"{first.title} has the lowest {response.title}: "
    text += f"{_value(response, first.typical)} (geometric mean)"
    near = [*choice.titles("equal"), *choice.titles("open")]
    if near:
        more = len(near) - NAMED_MAX
        names = near[:NAMED_MAX] + ([f"{words.count(more)} more"] if more > 0 else [])
        text += f"; not significantly higher: {words.listed(names)}"
    higher = [placed for placed in choice.placed if placed.group == "higher"]
    if not higher:
        return f"{text}. No other alternative is significantly higher."
    last = higher[-1]
    nearest = f"{words.number(higher[0].over_lowest)} times ({higher[0].title})"
    if len(higher) == 1:
        return f"{text}. One is significantly higher: {nearest}."
    return (
        f"{text}. {words.count(len(higher))} are significantly higher, from {nearest} to "
        f"{words.number(last.over_lowest)} times as much ({last.title}; at most "
        f"{words.number(last.at_most)})."
    )


def _medians_sentence(
    evidence: Evidence, choice: Choice, factors: Sequence[str], medians: Medians
) -> str:
    ordered = sorted(medians, key=lambda key: medians[key])
    low, high = (
        f"{' '.join(evidence.title(*pair) for pair in zip(factors, key, strict=True))} "
        f"({_value(choice.response, medians[key])})"
        for key in (ordered[0], ordered[-1])
    )
    return (
        f"Lowest observed {choice.response.title}: {low}; highest: {high}. The "
        f"{words.count(len(medians))} alternatives cannot be ranked yet: {choice.why_not}."
    )


def _wins_by_level(
    evidence: Evidence, response: Response, factors: Sequence[str], medians: Medians
) -> list[str]:
    """Return for two factors at how many levels of one each level of the other is lowest."""
    if len(factors) != 2:
        return []
    texts = []
    for index, factor in enumerate(factors):
        groups: dict[Any, list[tuple[Any, ...]]] = {}
        for key in medians:
            groups.setdefault(key[1 - index], []).append(key)
        compared = [keys for keys in groups.values() if len(keys) > 1]
        wins = Counter(min(keys, key=lambda key: medians[key])[index] for keys in compared)
        winners = [
            f"{evidence.title(factor, level)} at {words.count(count)}"
            for level, count in wins.most_common(NAMED_MAX)
        ]
        if winners:
            level_count = words.plural(len(compared), "level")
            texts.append(
                f"Lowest {response.title} by medians, over {level_count} of "
                f"{words.factor_title(factors[1 - index])}: {words.listed(winners)}."
            )
    return texts


# -- the page's first sentence ------------------------------------------------------------------


HEADLINE_NAMED_MAX = 6
"""Most alternatives that a sentence names one by one."""
CONDITIONS = ("payload_bytes", "literal", "clients", "rate_hz", "interval_s")


def headline(evidence: Evidence, found: Sequence[Choice]) -> str:
    """Return one sentence over all responses; "" where none of them could be compared."""
    compared = [choice for choice in found if choice.placed]
    if not compared:
        return ""
    phrases = []
    previous = ""
    for choice in compared:
        leader = choice.placed[0].title
        had = "the lowest" if leader == previous else f"{leader} had the lowest"
        phrases.append(
            f"{had} {choice.response.title} ({_comparison_with_lowest(evidence, choice)})"
        )
        previous = leader
    return (
        f"{_conditions(evidence)}of {words.plural(len(compared[0].placed), 'alternative')}, "
        f"{words.listed(phrases)}."
    )


def _conditions(evidence: Evidence) -> str:
    """Return the fixed conditions that a reader would ask for: payload, clients, rate."""
    fixed = evidence.study.fixed
    closed = fixed.get("loop") == "closed"
    phrases = []
    for name in CONDITIONS:
        useless = closed and name in ("rate_hz", "interval_s")
        hidden = name == "payload_bytes" and fixed.get("literal")
        if name in evidence.varied or fixed.get(name) in (None, "") or useless or hidden:
            continue
        value = fixed[name]
        phrases.append(f"“{value}”" if name == "literal" else evidence.title(name, value))
    return f"With {words.listed(phrases)}, " if phrases else "In these runs, "


def _comparison_with_lowest(evidence: Evidence, choice: Choice) -> str:
    lowest = choice.placed[0]
    unit = f" {choice.response.unit}" if choice.response.unit else ""
    phrases = [f"{words.number(lowest.typical)}{unit}"]
    margin = evidence.study.answers.margin
    if margin is not None:
        equal = _first_names(choice.titles("equal")) or "none shown"
        phrases.append(f"equal within {words.percent(margin)}: {equal}")
    if choice.titles("open"):
        phrases.append(f"not significantly higher: {_first_names(choice.titles('open'))}")
    higher_placed = [placed for placed in choice.placed if placed.group == "higher"]
    ratios = [placed.over_lowest for placed in higher_placed]
    if 0 < len(ratios) <= HEADLINE_NAMED_MAX:
        ratios_by_name = [
            f"{placed.title} {words.number(placed.over_lowest)}" for placed in higher_placed
        ]
        phrases.append(f"times as much: {words.listed(ratios_by_name)}")
    elif ratios:
        extremes = list(dict.fromkeys(words.number(ratio) for ratio in (min(ratios), max(ratios))))
        which = "every other" if len(phrases) == 1 else f"{len(ratios)} more"
        phrases.append(f"{which}: {' to '.join(extremes)} times as much")
    return "; ".join(phrases)


def _first_names(titles: Sequence[str]) -> str:
    """Return the names in a list; of many the first ones, and the number of further ones."""
    shown = list(titles[:HEADLINE_NAMED_MAX])
    more = len(titles) - len(shown)
    return words.listed([*shown, f"{more} more"] if more else shown)


def notes(evidence: Evidence, found: Sequence[Choice]) -> list[str]:
    """Return the method of the first sentence, and what that sentence leaves out."""
    compared = [choice for choice in found if choice.placed]
    texts = [
        f"Lowest {choice.response.title}: {choice.why_not}." for choice in found if choice.why_not
    ]
    if compared:
        texts.append(
            "The outcomes lowest, equal and not significantly higher hold jointly for "
            f"{words.listed([choice.response.title for choice in compared])} at "
            f"{words.confidence(CONFIDENCE)}: multiple comparisons with the best (Hsu 1984), "
            "one-sided t limits of each against all others, Bonferroni. “Equal”: the upper limit "
            "of the ratio to the truly lowest one is within the margin. “Not significantly "
            "higher”: the alternative may be the lowest."
        )
    missing = _unmeasured(evidence) if found else []
    if missing:
        texts.append(f"Without a usable run: {_first_names(missing)}.")
    return texts


def _unmeasured(evidence: Evidence) -> list[str]:
    """Return the alternatives of the design that no usable run belongs to."""
    factors = factors_of(evidence)
    usable = list(zip(*(levels_of(evidence.usable, name) for name in factors), strict=True))
    missing: dict[str, None] = {}
    for entry in evidence.designed:
        levels = {**(entry.get("levels") or {}), **(entry.get("treatment") or {})}
        alternative = [levels.get(name) for name in factors]
        if not any(all(map(same_level, alternative, measured)) for measured in usable):
            pairs = zip(factors, alternative, strict=True)
            missing[" ".join(evidence.title(name, value) for name, value in pairs)] = None
    return list(missing)
