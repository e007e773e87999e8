"""Sentences on the best alternative, for each question and after the questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.best_alternative import Choice, Placed, factors_of
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of, same_level
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.questions import Question
from wattwire.report.parts import Text
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "best",
    {
        "lowest_value": "lowest",
        "highest_value": "highest",
        "value": "{value:number}{unit}",
        "higher": "higher",
        "lower": "lower",
        "better_at": "{title} is better at {level}, by a factor of {ratio:number}",
        "more": "{more} more",
        # Below a question.
        "lowest": (
            "{title} has the {extreme} {response}: {value} ({mean}){near}. "
            "{higher}{reversals}{saturated}"
        ),
        "saturated_rate": (
            " The load was above the capacity of {titles:listed} (saturated), so the value is what "
            "these runs achieved."
        ),
        "saturated": (
            " The load was above the capacity of {titles:listed} (saturated), so the value is that "
            "of an overload."
        ),
        "saturated_title": "{title} ({saturated} of {runs:plural run})",
        "exchanges": "The order in {response} depends on {factor}: {pairs:listed}.",
        "exchange": (
            "{first} is better than {second} at {level} (by a factor of {ratio:number}) and worse "
            "at {other_level} ({other_ratio:number})"
        ),
        "no_exchange": (
            "No pair of the {alternatives:plural alternative} significantly changes its order in "
            "{response} with {factor}."
        ),
        "mean": "geometric mean",
        "mean_of_treatments": "geometric mean over {treatments:plural treatment}",
        "near": "; not significantly {worse}: {titles:listed}",
        "reversals": " But {levels:listed}.",
        "none_higher": "No other alternative is significantly {worse}.",
        "one_higher": (
            "One alternative is significantly {worse}, by a factor of {ratio:number} ({title})."
        ),
        "some_higher": (
            "{alternatives:count} alternatives are significantly {worse}, by a factor of "
            "{nearest_ratio:number} ({nearest}) to {farthest_ratio:number} ({farthest}; at most "
            "{at_most:number})."
        ),
        "more_titles": "{more:count} more",
        "unranked": (
            "The lowest observed {response} is {lowest}, and the highest is {highest}. The "
            "{alternatives:count} alternatives cannot be ranked yet: {reason}."
        ),
        "observed": "{title} ({value})",
        "wins": (
            "{extreme:capital} observed {response} at each of the {levels:plural level} of "
            "{factor}: "
            "{wins:listed}."
        ),
        "win": "{level} at {levels:plural level}",
        # After the questions.
        "not_compared": "{extreme:capital} {response}: {reason}.",
        "method": (
            "The outcomes “best”, “equivalent” and “not significantly worse” apply "
            "simultaneously for {responses:listed} at {confidence:confidence} (multiple "
            "comparisons with the best, Hsu 1984: one-sided t limits of each alternative against "
            "all others, Bonferroni). “Equivalent”: the upper limit of the ratio to the truly "
            "best alternative is within the margin. “Not significantly worse”: the alternative "
            "may be the best."
        ),
        "without_run": "Without a valid run: {titles:listed}.",
    },
)
NAMED_MAX = 4
"""Maximum number of alternatives or levels in a list."""
Means = dict[tuple[Any, ...], float]


def sentences(evidence: Evidence, question: Question, choices: Sequence[Choice]) -> list[Text]:
    """Return sentences on the best alternative in each response of the question.

    If the alternatives in `choices` cannot be compared, a sentence reports the observed values and
    the reason. The result is empty unless the question contains all factors of the alternatives.
    """
    factors = factors_of(evidence)
    if not factors or not set(factors) <= set(question.factors):
        return []
    responses = {resolve(name, evidence.described) for name in question.responses}
    texts = []
    for choice in choices:
        means = _means(evidence, choice, factors)
        if choice.response not in responses or len(means) < 2:
            continue
        text = (
            _ranked_sentence(evidence, choice)
            if choice.placed
            else _means_sentence(evidence, choice, factors, means)
        )
        texts += [
            text,
            *_exchanges(evidence, question, choice),
            *_wins_by_level(evidence, choice.response, factors, means),
        ]
    return [Text(text, "item") for text in texts]


def _means(evidence: Evidence, choice: Choice, factors: Sequence[str]) -> Means:
    """Return each comparable alternative's mean over its runs, by the levels of `factors`.

    The mean is geometric, as in the answers, and arithmetic if a run has no logarithm.
    """
    values: dict[tuple[Any, ...], list[float]] = {}
    for frame in by_treatment(evidence, evidence.usable).values():
        key = tuple(levels_of(frame, name)[0] for name in factors)
        if " ".join(map(evidence.title, factors, key)) in choice.without:
            continue
        known = column(frame, choice.response.column)
        values.setdefault(key, []).extend(known[np.isfinite(known)].tolist())
    known_values = {key: np.array(of_runs) for key, of_runs in values.items() if of_runs}
    if all((of_runs > 0).all() for of_runs in known_values.values()):
        return {key: float(np.exp(np.log(x).mean())) for key, x in known_values.items()}
    return {key: float(x.mean()) for key, x in known_values.items()}


def value_with_unit(response: Response, value: float) -> Phrase:
    unit = f" {response.unit}" if response.unit else ""
    return PHRASES("value", value=value, unit=unit)


def extreme_of(response: Response) -> Phrase:
    """Return the extreme of the best alternative."""
    return PHRASES("highest_value" if response.more_is_better else "lowest_value")


def worse_word(response: Response) -> Phrase:
    return PHRASES("lower" if response.more_is_better else "higher")


def _ranked_sentence(evidence: Evidence, choice: Choice) -> Phrase:
    """Return a sentence on the best alternative, its equals, and the worse alternatives."""
    first, near = choice.placed[0], [*choice.titles("equal"), *choice.titles("open")]
    if len(near) > NAMED_MAX:
        near = [*near[:NAMED_MAX], PHRASES("more_titles", more=len(near) - NAMED_MAX)]
    return PHRASES(
        "lowest",
        title=first.title,
        extreme=extreme_of(choice.response),
        response=choice.response.title,
        value=value_with_unit(choice.response, first.typical),
        mean=PHRASES("mean_of_treatments", treatments=first.treatments)
        if first.treatments > 1
        else PHRASES("mean"),
        near=PHRASES("near", titles=near, worse=worse_word(choice.response)) if near else "",
        higher=_higher(
            [placed for placed in choice.placed if placed.group == "higher"],
            worse_word(choice.response),
        ),
        reversals=PHRASES("reversals", levels=reversal_phrases(evidence, choice))
        if choice.reversals
        else "",
        saturated=_saturated(choice),
    )


def _saturated(choice: Choice) -> Phrase:
    """Return a sentence on the ranked alternatives whose load was above the capacity, or ""."""
    titles = [
        PHRASES("saturated_title", title=title, saturated=saturated, runs=runs)
        for title, (saturated, runs) in choice.saturated.items()
    ]
    if not titles:
        return Phrase()
    return PHRASES(
        "saturated_rate" if choice.response.more_is_better else "saturated", titles=titles
    )


def reversal_phrases(evidence: Evidence, choice: Choice) -> list[str]:
    """Return the levels of other factors at which another alternative is better."""
    phrases = [
        PHRASES(
            "better_at",
            title=reversal.title,
            level=evidence.title(reversal.factor, reversal.level),
            ratio=reversal.ratio,
        )
        for reversal in choice.reversals
    ]
    return first_names(phrases, NAMED_MAX)


def _exchanges(evidence: Evidence, question: Question, choice: Choice) -> list[Phrase]:
    """Return a sentence per other factor of the question: which pairs change places with it."""
    texts = []
    for factor in question.factors:
        exchanges = choice.exchanges.get(factor)
        if exchanges is None:
            continue
        title = words.factor_title(factor)
        if not exchanges:
            texts.append(
                PHRASES(
                    "no_exchange",
                    alternatives=len(choice.placed),
                    response=choice.response.title,
                    factor=title,
                )
            )
            continue
        pairs = [
            PHRASES(
                "exchange",
                first=exchange.first,
                second=exchange.second,
                level=evidence.title(factor, exchange.level),
                ratio=exchange.ratio,
                other_level=evidence.title(factor, exchange.other_level),
                other_ratio=exchange.other_ratio,
            )
            for exchange in exchanges
        ]
        texts.append(
            PHRASES(
                "exchanges",
                response=choice.response.title,
                factor=title,
                pairs=first_names(pairs, NAMED_MAX),
            )
        )
    return texts


def _higher(higher: Sequence[Placed], worse: Phrase) -> Phrase:
    if not higher:
        return PHRASES("none_higher", worse=worse)
    # The order by means over all treatments may differ from the order of the ratios.
    nearest, farthest = (pick(higher, key=lambda at: at.over_lowest) for pick in (min, max))
    if len(higher) == 1:
        return PHRASES("one_higher", ratio=nearest.over_lowest, title=nearest.title, worse=worse)
    return PHRASES(
        "some_higher",
        alternatives=len(higher),
        nearest_ratio=nearest.over_lowest,
        nearest=nearest.title,
        farthest_ratio=farthest.over_lowest,
        farthest=farthest.title,
        at_most=farthest.at_most,
        worse=worse,
    )


def _means_sentence(
    evidence: Evidence, choice: Choice, factors: Sequence[str], means: Means
) -> Phrase:
    ordered = sorted(means, key=lambda key: means[key])
    lowest, highest = (
        PHRASES(
            "observed",
            title=" ".join(evidence.title(*pair) for pair in zip(factors, key, strict=True)),
            value=value_with_unit(choice.response, means[key]),
        )
        for key in (ordered[0], ordered[-1])
    )
    return PHRASES(
        "unranked",
        response=choice.response.title,
        lowest=lowest,
        highest=highest,
        alternatives=len(means),
        reason=choice.why_not,
    )


def _wins_by_level(
    evidence: Evidence, response: Response, factors: Sequence[str], means: Means
) -> list[Phrase]:
    """Return sentences on how often each level of a factor is the best over the other factor.

    The result is empty unless there are two factors.
    """
    if len(factors) != 2:
        return []
    texts = []
    for index, factor in enumerate(factors):
        groups: dict[Any, list[tuple[Any, ...]]] = {}
        for key in means:
            groups.setdefault(key[1 - index], []).append(key)
        compared = [keys for keys in groups.values() if len(keys) > 1]
        best = max if response.more_is_better else min
        wins = Counter(best(keys, key=lambda key: means[key])[index] for keys in compared)
        winners = [
            PHRASES("win", level=evidence.title(factor, level), levels=count)
            for level, count in wins.most_common(NAMED_MAX)
        ]
        if winners:
            texts.append(
                PHRASES(
                    "wins",
                    extreme=extreme_of(response),
                    response=response.title,
                    levels=len(compared),
                    factor=words.factor_title(factors[1 - index]),
                    wins=winners,
                )
            )
    return texts


NAMES_MAX = 6
"""Maximum number of names in a sentence on one response."""


def first_names(titles: Sequence[str], most: int = NAMES_MAX) -> list[str]:
    """Return up to `most` names, and the number of further names."""
    shown = list(titles[:most])
    more = len(titles) - len(shown)
    return [*shown, PHRASES("more", more=more)] if more else shown


def notes(evidence: Evidence, choices: Sequence[Choice]) -> list[Phrase]:
    """Return sentences on the method and the omissions of the first sentence."""
    compared = [choice for choice in choices if choice.placed]
    texts = [
        PHRASES(
            "not_compared",
            extreme=extreme_of(choice.response),
            response=choice.response.title,
            reason=choice.why_not,
        )
        for choice in choices
        if choice.why_not
    ]
    if compared:
        responses = [choice.response.title for choice in compared]
        texts.append(PHRASES("method", responses=responses, confidence=CONFIDENCE))
    missing = _unmeasured(evidence) if choices else []
    if missing:
        texts.append(PHRASES("without_run", titles=first_names(missing)))
    return texts


def _unmeasured(evidence: Evidence) -> list[str]:
    """Return the alternatives of the design without a valid run."""
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
