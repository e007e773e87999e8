"""Sentences on the best alternative, for the headline and for each question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.best_alternative import Choice, Placed, factors_of, mean_shares
from wattwire.analysis.contrasts import CONFIDENCE, Answers, Result
from wattwire.analysis.dataset import Evidence, by_treatment, held_levels, levels_of, same_level
from wattwire.analysis.flows.growth import growths
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.questions import Question
from wattwire.report.parts import Text
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "best",
    {
        # The first sentence of the page.
        "headline": (
            "{conditions}of {alternatives:plural alternative}, {no_winner}{leaders:listed}{growth}."
        ),
        "no_winner": "none is the best in all {responses:plural response}: ",
        "no_winner_at_all_levels": "none is the best at all levels of the other factors: ",
        "unranked_response": "no ranking by {response} ({reason})",
        "shares": (
            "the lowest mean {response} is {lowest:percent} ({titles:listed}) and the highest "
            "{highest:percent} ({title})"
        ),
        "and_growth": "; {growth}",
        "growth": (
            "with {added:listed} also sent, the {response} changed by a factor of {ratios:listed}"
        ),
        "no_growth": "with {added:listed} also sent, the growth of the {response} is not known",
        "growth_ratio": "{interval:estimate} ({confidence:confidence} CI {interval:limits})",
        "growth_at": (
            "{interval:estimate} ({confidence:confidence} CI {interval:limits}) at {level}"
        ),
        "growth_unknown": "; not known at {level} ({reason})",
        "with_conditions": "With {conditions:listed}, ",
        "in_these_runs": "In these runs, ",
        "literal": "“{literal}”",
        "leader": "{leader} had the {extreme} {response} ({comparison})",
        "same_leader": "the {extreme} {response} ({comparison})",
        "lowest_value": "lowest",
        "highest_value": "highest",
        "value": "{value:number}{unit}",
        "mean_value": "{value} on average over {treatments:plural treatment}",
        "equal": "equivalent within {margin:percent}: {titles:listed}",
        "none_equal": "equivalent within {margin:percent}: none",
        "not_higher": "not significantly {worse}: {titles:listed}",
        "higher": "higher",
        "lower": "lower",
        "times": "{worse} by a factor of: {alternatives:listed}",
        "ratio_of": "{title} {ratio:number}",
        "every_other": "all others: {worse} by a factor of {ratios}",
        "others_higher": "{alternatives} others: {worse} by a factor of {ratios}",
        "ratio": "{ratio:number}",
        "not_best_at": "but {levels:listed}",
        "better_at": "{title} is better at {level}, by a factor of {ratio:number}",
        "more": "{more} more",
        # Below a question.
        "lowest": (
            "{title} has the {extreme} {response}: {value} ({mean}){near}. {higher}{reversals}"
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
            "{extreme:capital} median {response} at each of the {levels:plural level} of "
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
Medians = dict[tuple[Any, ...], float]


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
        medians = _medians(evidence, choice, factors)
        if choice.response not in responses or len(medians) < 2:
            continue
        text = (
            _ranked_sentence(evidence, choice)
            if choice.placed
            else _medians_sentence(evidence, choice, factors, medians)
        )
        texts += [text, *_wins_by_level(evidence, choice.response, factors, medians)]
    return [Text(text, "item") for text in texts]


def _medians(evidence: Evidence, choice: Choice, factors: Sequence[str]) -> Medians:
    """Return each comparable alternative's median over its runs, by the levels of `factors`."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for frame in by_treatment(evidence, evidence.usable).values():
        key = tuple(levels_of(frame, name)[0] for name in factors)
        if " ".join(map(evidence.title, factors, key)) in choice.without:
            continue
        known = column(frame, choice.response.column)
        values.setdefault(key, []).extend(known[np.isfinite(known)].tolist())
    return {key: float(np.median(run_values)) for key, run_values in values.items() if run_values}


def _value(response: Response, value: float) -> Phrase:
    unit = f" {response.unit}" if response.unit else ""
    return PHRASES("value", value=value, unit=unit)


def _extreme(response: Response) -> Phrase:
    """Return the extreme of the best alternative."""
    return PHRASES("highest_value" if response.more_is_better else "lowest_value")


def _worse(response: Response) -> Phrase:
    return PHRASES("lower" if response.more_is_better else "higher")


def _ranked_sentence(evidence: Evidence, choice: Choice) -> Phrase:
    """Return a sentence on the best alternative, its equals, and the worse alternatives."""
    first, near = choice.placed[0], [*choice.titles("equal"), *choice.titles("open")]
    if len(near) > NAMED_MAX:
        near = [*near[:NAMED_MAX], PHRASES("more_titles", more=len(near) - NAMED_MAX)]
    return PHRASES(
        "lowest",
        title=first.title,
        extreme=_extreme(choice.response),
        response=choice.response.title,
        value=_value(choice.response, first.typical),
        mean=PHRASES("mean_of_treatments", treatments=first.treatments)
        if first.treatments > 1
        else PHRASES("mean"),
        near=PHRASES("near", titles=near, worse=_worse(choice.response)) if near else "",
        higher=_higher(
            [placed for placed in choice.placed if placed.group == "higher"],
            _worse(choice.response),
        ),
        reversals=PHRASES("reversals", levels=_reversals(evidence, choice))
        if choice.reversals
        else "",
    )


def _reversals(evidence: Evidence, choice: Choice) -> list[Phrase]:
    """Return the levels of other factors at which another alternative is better."""
    phrases = [
        PHRASES(
            "better_at",
            title=reversal.title,
            level=evidence.title(reversal.factor, reversal.level),
            ratio=reversal.ratio,
        )
        for reversal in choice.reversals[:NAMED_MAX]
    ]
    more = len(choice.reversals) - NAMED_MAX
    return [*phrases, *([PHRASES("more", more=more)] if more > 0 else [])]


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


def _medians_sentence(
    evidence: Evidence, choice: Choice, factors: Sequence[str], medians: Medians
) -> Phrase:
    ordered = sorted(medians, key=lambda key: medians[key])
    lowest, highest = (
        PHRASES(
            "observed",
            title=" ".join(evidence.title(*pair) for pair in zip(factors, key, strict=True)),
            value=_value(choice.response, medians[key]),
        )
        for key in (ordered[0], ordered[-1])
    )
    return PHRASES(
        "unranked",
        response=choice.response.title,
        lowest=lowest,
        highest=highest,
        alternatives=len(medians),
        reason=choice.why_not,
    )


def _wins_by_level(
    evidence: Evidence, response: Response, factors: Sequence[str], medians: Medians
) -> list[Phrase]:
    """Return sentences on how often each level of a factor is the best over the other factor.

    The result is empty unless there are two factors.
    """
    if len(factors) != 2:
        return []
    texts = []
    for index, factor in enumerate(factors):
        groups: dict[Any, list[tuple[Any, ...]]] = {}
        for key in medians:
            groups.setdefault(key[1 - index], []).append(key)
        compared = [keys for keys in groups.values() if len(keys) > 1]
        best = max if response.more_is_better else min
        wins = Counter(best(keys, key=lambda key: medians[key])[index] for keys in compared)
        winners = [
            PHRASES("win", level=evidence.title(factor, level), levels=count)
            for level, count in wins.most_common(NAMED_MAX)
        ]
        if winners:
            texts.append(
                PHRASES(
                    "wins",
                    extreme=_extreme(response),
                    response=response.title,
                    levels=len(compared),
                    factor=words.factor_title(factors[1 - index]),
                    wins=winners,
                )
            )
    return texts


# -- the first sentence of the page -------------------------------------------------------------


EQUAL_SHARES = 0.001
"""Smallest difference of two mean shares that decides between alternatives."""
HEADLINE_NAMED_MAX, HEADLINE_NAMED_MAX_EACH = 6, 3
"""Maximum number of alternatives that a sentence names, in one response and in each of several."""
CONDITIONS = ("payload_bytes", "literal", "clients", "rate_hz", "interval_s")


def headline(evidence: Evidence, choices: Sequence[Choice], growth: str = "") -> Phrase:
    """Return a sentence on all responses, or "" if no response can be compared.

    `growth` is a clause on the growth of latency, with which the sentence ends.
    """
    compared = [choice for choice in choices if choice.placed]
    if not compared:
        return Phrase()
    most = HEADLINE_NAMED_MAX if len(choices) == 1 else HEADLINE_NAMED_MAX_EACH
    clauses = []
    previous = ""
    for choice in compared:
        leader, response = choice.placed[0].title, choice.response
        extreme, title = _extreme(response), response.title
        comparison = _comparison_with_best(evidence, choice, most)
        clauses.append(
            PHRASES("same_leader", extreme=extreme, response=title, comparison=comparison)
            if leader == previous
            else PHRASES(
                "leader", leader=leader, extreme=extreme, response=title, comparison=comparison
            )
        )
        previous = leader
    clauses += [
        PHRASES("unranked_response", response=choice.response.title, reason=choice.why_not)
        for choice in choices
        if not choice.placed
    ]
    shares = mean_shares(evidence)
    share_clauses = [clause for item in shares.items() if (clause := _shares_clause(*item))]
    clauses += share_clauses
    has_winner = len(choices) == len(compared) and _wins_all(compared, shares)
    no_winner = Phrase()
    if not has_winner:
        no_winner = PHRASES("no_winner", responses=len(choices) + len(share_clauses))
    elif any(choice.reversals for choice in compared):
        no_winner = PHRASES("no_winner_at_all_levels")
    return PHRASES(
        "headline",
        conditions=_conditions(evidence),
        alternatives=len(compared[0].placed),
        no_winner=no_winner,
        leaders=clauses,
        growth=PHRASES("and_growth", growth=growth) if growth else "",
    )


def _wins_all(compared: Sequence[Choice], shares: Mapping[Response, Mapping[str, float]]) -> bool:
    """Return whether one alternative is the best in each ranked response and in each share."""
    leaders = {choice.placed[0].title for choice in compared}
    if len(leaders) > 1:
        return False
    (leader,) = leaders
    return all(
        leader in means and means[leader] - min(means.values()) < EQUAL_SHARES
        for means in shares.values()
    )


def _shares_clause(response: Response, means: Mapping[str, float]) -> Phrase:
    """Return the alternatives with the lowest and with the highest share; "" if all are equal."""
    lowest, highest = min(means.values()), max(means.values())
    if highest - lowest < EQUAL_SHARES:
        return Phrase()
    titles = [title for title, mean in means.items() if mean - lowest < EQUAL_SHARES]
    return PHRASES(
        "shares",
        response=response.title,
        lowest=lowest,
        titles=_first_names(titles),
        highest=highest,
        title=max(means, key=lambda title: means[title]),
    )


def growth(evidence: Evidence, answers: Answers) -> Phrase:
    """Return the growth of each flow's median latency; "" for a study that asks for none."""
    texts = []
    for item in growths(evidence, answers):
        rows = [(evidence.title(row.other, row.level), row.result) for row in item.at_levels]
        rows = rows or [("", item.answer.result)]
        ratios = [_growth_ratio(level, result) for level, result in rows]
        known = [ratio for ratio in ratios if ratio]
        response = item.answer.response.title
        clause = (
            PHRASES("growth", added=item.added, response=response, ratios=known)
            if known
            else PHRASES("no_growth", added=item.added, response=response)
        )
        reasons = [
            PHRASES("growth_unknown", level=level, reason=str(result))
            for (level, result), ratio in zip(rows, ratios, strict=True)
            if level and not ratio
        ]
        texts.append(joined([clause, *reasons], ""))
    return joined(texts, "; ")


def _growth_ratio(level: str, result: Result) -> Phrase:
    if not isinstance(result, stats.Ratio):
        return Phrase()
    if not level:
        return PHRASES("growth_ratio", interval=result.interval, confidence=CONFIDENCE)
    return PHRASES("growth_at", interval=result.interval, confidence=CONFIDENCE, level=level)


def _conditions(evidence: Evidence) -> Phrase:
    """Describe the main fixed conditions, such as payload, clients and rate."""
    held = held_levels(evidence)
    conditions = []
    for name in CONDITIONS:
        hidden = name == "payload_bytes" and held.get("literal")
        if name in evidence.varied or held.get(name) in (None, "") or hidden:
            continue
        value = held[name]
        conditions.append(
            PHRASES("literal", literal=value) if name == "literal" else evidence.title(name, value)
        )
    if not conditions:
        return PHRASES("in_these_runs")
    return PHRASES("with_conditions", conditions=conditions)


def _comparison_with_best(evidence: Evidence, choice: Choice, most: int) -> Phrase:
    lowest, worse = choice.placed[0], _worse(choice.response)
    value = _value(choice.response, lowest.typical)
    # No single treatment has the mean of several.
    averaged = PHRASES("mean_value", value=value, treatments=lowest.treatments)
    texts = [averaged if lowest.treatments > 1 else value]
    margin = evidence.study.answers.margin
    if margin is not None:
        equal = _first_names(choice.titles("equal"), most)
        texts.append(
            PHRASES("equal", margin=margin, titles=equal)
            if equal
            else PHRASES("none_equal", margin=margin)
        )
    if choice.titles("open"):
        open_titles = _first_names(choice.titles("open"), most)
        texts.append(PHRASES("not_higher", titles=open_titles, worse=worse))
    higher_placed = [placed for placed in choice.placed if placed.group == "higher"]
    ratios = [placed.over_lowest for placed in higher_placed]
    if 0 < len(ratios) <= most:
        alternatives = [
            PHRASES("ratio_of", title=placed.title, ratio=placed.over_lowest)
            for placed in higher_placed
        ]
        texts.append(PHRASES("times", alternatives=alternatives, worse=worse))
    elif ratios:
        extremes = joined(
            dict.fromkeys(PHRASES("ratio", ratio=ratio) for ratio in (min(ratios), max(ratios))),
            " to ",
        )
        texts.append(
            PHRASES("every_other", ratios=extremes, worse=worse)
            if len(texts) == 1
            else PHRASES("others_higher", alternatives=len(ratios), ratios=extremes, worse=worse)
        )
    if choice.reversals:
        texts.append(PHRASES("not_best_at", levels=_reversals(evidence, choice)))
    return joined(texts, "; ")


def _first_names(titles: Sequence[str], most: int = HEADLINE_NAMED_MAX) -> list[str]:
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
            extreme=_extreme(choice.response),
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
        texts.append(PHRASES("without_run", titles=_first_names(missing)))
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
