"""Sentences of the headline besides the first answer.

They state whether one level is better in all responses that the study compares, and how a response
changes over a numeric factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import Evidence, same_level
from wattwire.analysis.response_lines import slope_within
from wattwire.model import words
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "headline",
    {
        "winner": "{winner} is better than {loser} in all {responses:plural response}.",
        "partial": (
            "{winner} is better than {loser} in {better} of {responses:plural response}{parts}."
        ),
        "none": (
            "Neither {level} nor {baseline} is better in all {responses:plural response}{parts}."
        ),
        "no_better": (
            "Neither {level} nor {baseline} is better in any of {responses:plural response}{parts}."
        ),
        # Responses of which the better direction is unknown.
        "no_direction": "{level} and {baseline} in {responses:plural response}: {parts}.",
        "parts": " ({parts})",
        "higher": "higher {responses:listed}: {title}",
        "better": "better by {responses:listed}: {title}",
        "equivalent": "equivalent: {responses:listed}",
        "undecided": "no difference detected: {responses:listed}",
        "within_noise": "not larger than the A/A noise: {responses:listed}",
        "depends": "dependent on another factor: {responses:listed}",
        "never": "none in any run: {responses:listed}",
        "unknown": "no result: {responses:listed}",
        "exact": "{response:capital}: {reason}.",
        # A numeric factor with several levels.
        "slope": (
            "Each further {step} adds {slope:estimate}{unit} to the {response} "
            "({confidence:confidence} CI {slope:limits}{averaged}){curved}."
        ),
        "averaged": "; mean over the levels of {factors:listed}",
        "curved": "; the levels deviate from a line",
        "other_factor": ("{level} had {ratio:number} times the {response} of {baseline}."),
    },
)

HIGHER_SIDES = {"higher level": "level", "higher baseline": "baseline"}
"""Group of the responses that are higher on one side, and that side."""
OTHERS_NAMED = 2
"""Maximum number of other factors whose effects the headline names."""


def same_pair(answers: Answers, first: Answer) -> list[Answer]:
    """Return one answer per response, in the study's order, on the two levels of `first`."""
    by_response = {
        item.response: item
        for item in reversed(answers.items)
        if item.factor == first.factor
        and same_level(item.level, first.level)
        and same_level(item.baseline, first.baseline)
    }
    return [by_response[response] for response in dict.fromkeys(
        item.response for item in answers.items) if response in by_response]  # fmt: skip


def winner_sentence(evidence: Evidence, answers: Answers, first: Answer) -> Phrase:
    """Return the level that is better in all responses, or the better level of each response.

    The result is "" if the two levels of `first` are compared in one response only.
    """
    items = same_pair(answers, first)
    if len(items) < 2:
        return Phrase()
    level, baseline = (evidence.title(first.factor, at) for at in (first.level, first.baseline))
    groups: dict[str, list[str]] = {}
    for item in items:
        groups.setdefault(_group(answers, item), []).append(item.response.title)
    titles = {"level": level, "baseline": baseline}
    if any(side in groups for side in HIGHER_SIDES):
        # Without the better direction of a response, no level is better in all responses.
        return PHRASES(
            "no_direction",
            level=level,
            baseline=baseline,
            responses=len(items),
            parts=joined(_groups(groups, titles), "; "),
        )
    winners = [side for side in titles if side in groups]
    responses = len(items) - len(groups.get("never", ()))  # what never occurred has no better side
    if responses < 2:
        return Phrase()
    if len(winners) == 1:
        (side,) = winners
        winner, better = titles[side], len(groups.pop(side))
        loser = baseline if side == "level" else level
        if better == responses:
            return PHRASES("winner", winner=winner, loser=loser, responses=responses)
        return PHRASES(
            "partial",
            winner=winner,
            loser=loser,
            better=better,
            responses=responses,
            parts=_parts(groups, titles),
        )
    return PHRASES(
        "none" if winners else "no_better",
        level=level,
        baseline=baseline,
        responses=responses,
        parts=_parts(groups, titles),
    )


def _parts(groups: Mapping[str, Sequence[str]], titles: Mapping[str, str]) -> Phrase:
    return PHRASES("parts", parts=joined(_groups(groups, titles), "; "))


def _groups(groups: Mapping[str, Sequence[str]], titles: Mapping[str, str]) -> list[Phrase]:
    """Return the responses of each group, the better ones with the better level."""
    parts = [
        PHRASES("better", responses=groups[side], title=title)
        for side, title in titles.items()
        if side in groups
    ]
    parts += [
        PHRASES("higher", responses=groups[higher], title=titles[side])
        for higher, side in HIGHER_SIDES.items()
        if higher in groups
    ]
    if titles_of := groups.get("equivalent"):
        parts.append(PHRASES("equivalent", responses=titles_of))
    if titles_of := groups.get("undecided"):
        parts.append(PHRASES("undecided", responses=titles_of))
    if titles_of := groups.get("within noise"):
        parts.append(PHRASES("within_noise", responses=titles_of))
    if titles_of := groups.get("depends"):
        parts.append(PHRASES("depends", responses=titles_of))
    if titles_of := groups.get("never"):
        parts.append(PHRASES("never", responses=titles_of))
    if titles_of := groups.get("unknown"):
        parts.append(PHRASES("unknown", responses=titles_of))
    return parts


def _group(answers: Answers, item: Answer) -> str:
    """Return "level" or "baseline" for the better side, or why neither is better.

    If the better direction is unknown, the result is the key of the higher side in HIGHER_SIDES.
    """
    result = item.result
    if isinstance(result, stats.Exact):
        if result.level == result.baseline:
            return "equivalent"
        is_higher = result.level > result.baseline
    elif isinstance(result, stats.Never):
        return "never"
    elif not isinstance(result, NUMBER):
        return "unknown"
    else:
        outcome = answers.outcome(item)
        if outcome != "different":
            return outcome
        is_higher = result.interval.estimate > (1 if isinstance(result, stats.Ratio) else 0)
    if not item.response.direction:
        return "higher level" if is_higher else "higher baseline"
    return "level" if is_higher == item.response.more_is_better else "baseline"


def exact_shares(answers: Answers, first: Answer) -> Sequence[Phrase]:
    """Return a sentence per share of this pair that differs without scatter between blocks.

    Such a share has no interval, but the loss of every run precedes the times of what arrived.
    """
    return [
        PHRASES("exact", response=item.response.title, reason=item.result)
        for item in same_pair(answers, first)
        if isinstance(item.result, stats.Exact) and item.result.level != item.result.baseline
    ]


def extreme_answer(evidence: Evidence, answers: Answers, first: Answer) -> Answer:
    """Return the answer on the level that is farthest from the baseline.

    For a factor that is not numeric, it is the answer on the best of the levels with the outcome of
    `first`: the best level against the baseline, or the next best if the baseline is the best.
    """
    same = [
        item
        for item in (*answers.computed(), *answers.differences())
        if item.factor == first.factor and item.response == first.response
    ]
    if _is_numeric(evidence, first.factor):
        return max(same, key=lambda item: abs(float(item.level) - float(item.baseline)))
    outcome = answers.outcome(first)
    alike = [item for item in same if answers.outcome(item) == outcome]
    pick = max if first.response.more_is_better else min
    return pick(alike, key=lambda item: item.interval.estimate)


def along_factor(evidence: Evidence, answers: Answers, first: Answer) -> list[Phrase]:
    """Return the slope over a numeric factor with a line, and the effects of the other factors.

    The result is empty for other factors. The effects are the largest ratio of each factor.
    """
    fit = slope_within(evidence, first.response, first.factor)
    if fit is None:
        return []
    unit = f" {first.response.unit}" if first.response.unit else ""
    others = [words.factor_title(name) for name in evidence.varied if name != first.factor]
    texts = [
        PHRASES(
            "slope",
            step=words.step(first.factor),
            slope=fit.slope,
            unit=unit,
            response=first.response.title,
            averaged=PHRASES("averaged", factors=others) if others else "",
            confidence=CONFIDENCE,
            curved=PHRASES("curved") if fit.lack_of_fit.p < 1 - CONFIDENCE else "",
        )
    ]
    largest: dict[str, Answer] = {}
    for item in answers.computed():
        is_other = item.response == first.response and item.factor != first.factor
        is_larger = _distance(item) > _distance(largest.get(item.factor))
        if is_other and is_larger and answers.outcome(item) == "different":
            largest[item.factor] = item
    return texts + _largest_ratios(evidence, largest.values())


def other_levels(evidence: Evidence, answers: Answers, first: Answer) -> list[Phrase]:
    """Return the largest ratios of the other levels of the factor of `first`, if it has words."""
    if _is_numeric(evidence, first.factor):
        return []
    others = [
        item
        for item in answers.computed()
        if item.response == first.response and item.factor == first.factor
        if item.key != first.key and answers.outcome(item) == "different"
    ]
    return _largest_ratios(evidence, others)


def _largest_ratios(evidence: Evidence, items: Iterable[Answer]) -> list[Phrase]:
    """Return a sentence on each of the OTHERS_NAMED largest ratios."""
    texts = []
    for item in sorted(items, key=lambda one: -_distance(one))[:OTHERS_NAMED]:
        sides = [evidence.title(item.factor, at) for at in (item.level, item.baseline)]
        above = item.interval.estimate >= 1
        level, baseline = sides if above else sides[::-1]
        texts.append(
            PHRASES(
                "other_factor",
                level=level,
                ratio=math.exp(_distance(item)),
                response=item.response.title,
                baseline=baseline,
            )
        )
    return texts


def _distance(answer: Answer | None) -> float:
    """Return the |log ratio|; 0 without an answer."""
    return abs(math.log(answer.interval.estimate)) if answer else 0.0


def _is_numeric(evidence: Evidence, factor: str) -> bool:
    levels = evidence.factors.get(factor, ())
    return all(isinstance(level, (int, float)) and not isinstance(level, bool) for level in levels)
