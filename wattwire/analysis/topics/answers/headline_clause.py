"""Compute what the headline states of the answers, if no ranking and no variants precede them.

It states whether one level is better in all responses that the study compares (`winner.py`), the
first answer, and how this answer changes over a numeric factor and with other factors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.answering.confidence import CONFIDENCE, has_few_degrees
from wattwire.analysis.dataset import Evidence, judges_variants
from wattwire.analysis.response_lines import slope_within
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.answers.nothing import (
    Ended,
    NoResult,
    NothingToCompare,
    ended,
    exclusion_reasons,
    no_result,
    nothing_to_compare,
)
from wattwire.analysis.topics.answers.statements import (
    Statement,
    above_one,
    statement,
    statement_with_all,
)
from wattwire.analysis.topics.answers.winner import (
    ExactShare,
    Winner,
    exact_shares,
    winner_of,
)
from wattwire.analysis.topics.interactions.numbers import Interactions, partly_answered
from wattwire.analysis.topics.ranking.numbers import RankedAlternatives
from wattwire.model import words
from wattwire.model.treatment import are_numbers

UNDECIDED = ("within noise", "undecided")
"""Outcomes without a decision, in their order in the headline."""
LEVELS_NAMED = 3
"""Maximum number of levels whose ratio the headline states if another level refuses the answer."""
OTHERS_NAMED = 2
"""Maximum number of other factors whose effects the headline names."""


@dataclass(frozen=True)
class Incomplete:
    """A campaign that tried `tried` of the `runs` runs of its design so far."""

    tried: int
    runs: int


@dataclass(frozen=True)
class AtRemainingLevel:
    """A ratio at a level of another factor, of which another level refuses the answer."""

    level_title: str
    statement: Statement


@dataclass(frozen=True)
class LargestRatio:
    """The largest ratio of a factor in a response."""

    level_title: str
    ratio: float
    response_title: str
    baseline_title: str


@dataclass(frozen=True)
class Slope:
    """The slope of a response over a numeric factor per `step`, a mean over other factors."""

    response: Response
    step: str
    line: stats.LinearFit
    averaged: tuple[str, ...]
    confidence: float = CONFIDENCE

    @property
    def is_curved(self) -> bool:
        """Whether the levels deviate from a line."""
        return self.line.lack_of_fit.p < 1 - self.confidence


@dataclass(frozen=True)
class Dependence:
    """The extreme ratios of an answer over the levels of another factor."""

    other_title: str
    lowest: float
    lowest_title: str
    highest: float
    highest_title: str


@dataclass(frozen=True)
class First:
    """The answer of the headline, with what precedes and follows it.

    `few_degrees` are the degrees of freedom of an error that has few of them, else 0; `blocks` is
    the number of blocks. `decided` is an answer of another factor that precedes an undecided one.
    `averaged` are the factors over whose levels the answer is a mean, `other_title` is the one on
    which it depends.
    """

    statement: Statement
    outcome: str
    level_title: str
    baseline_title: str
    blocks: int
    is_imported: bool
    few_degrees: int = 0
    winner: Winner | None = None
    exact: tuple[ExactShare, ...] = ()
    decided: Statement | None = None
    averaged: tuple[str, ...] = ()
    other_title: str = ""
    slope: Slope | None = None
    ratios: tuple[LargestRatio, ...] = ()
    dependences: tuple[Dependence, ...] = ()


@dataclass(frozen=True)
class WithoutContrast:
    """Why no answer has a number that the headline can state.

    `of_all` is an answer that includes excluded runs, which are `excluded` of `tried` runs, for
    these `reasons`. Otherwise `reason` is that of the first answer, or `nothing` is compared.
    """

    of_all: Statement | None = None
    excluded: int = 0
    tried: int = 0
    reasons: tuple[str, ...] = ()
    reason: str = ""
    nothing: NothingToCompare | None = None


@dataclass(frozen=True)
class Headline:
    """What the headline states of the answers; nothing if variants or a ranking precede them.

    Without a valid run, it is `no_result` alone, and without any record of a message `ended` alone.
    """

    no_result: NoResult | None = None
    ended: Ended | None = None
    incomplete: Incomplete | None = None
    remaining: tuple[AtRemainingLevel, ...] = ()
    first: First | None = None
    without: WithoutContrast | None = None


def headline(
    evidence: Evidence,
    answers: Answers,
    interactions: Interactions,
    ranking: RankedAlternatives,
) -> Headline:
    """Return what the headline states of the answers."""
    nothing, end = no_result(evidence), ended(evidence)
    if nothing or end:
        return Headline(nothing, end)
    untried, runs = evidence.untried(evidence.designed), len(evidence.designed)
    incomplete = Incomplete(runs - untried, runs) if untried else None
    remaining = tuple(_at_remaining_levels(evidence, answers, interactions))
    if judges_variants(evidence) or _has_ranking(evidence, ranking):
        return Headline(None, None, incomplete, remaining)
    numbers = [*answers.computed(), *answers.differences()]
    # Energy has its own section, so it is in the headline only if no question has another number.
    candidates = [item for item in numbers if not item.response.energy] or numbers
    candidates.sort(
        key=lambda item: (item.factor != evidence.primary, _order_of(answers.outcome(item)))
    )
    if not candidates:
        without = _without_contrast(evidence, answers)
        return Headline(None, None, incomplete, remaining, None, without)
    first = _first(evidence, answers, interactions, candidates)
    return Headline(None, None, incomplete, remaining, first)


def _has_ranking(evidence: Evidence, ranking: RankedAlternatives) -> bool:
    """Return whether the headline has a sentence on the best alternative."""
    return bool(ranking.ranked) if evidence.study.flows else ranking.headline is not None


def _order_of(outcome: str) -> int:
    """Return the position of an outcome in the headline, where decided answers come first."""
    return UNDECIDED.index(outcome) + 1 if outcome in UNDECIDED else 0


def _at_remaining_levels(
    evidence: Evidence, answers: Answers, interactions: Interactions
) -> Iterator[AtRemainingLevel]:
    """Yield the ratios at levels of another factor, if another level of it refuses the answer.

    One saturated rate would otherwise hide the answer at all other rates.
    """
    if judges_variants(evidence) or evidence.study.answers.best_of or evidence.study.flows:
        return
    refused = [item for item in partly_answered(evidence, answers) if not item.response.share]
    refused.sort(key=lambda item: item.factor != evidence.primary)
    rows = [row for row in interactions.at_levels if refused and row.answer is refused[0]]
    refusing = {row.other for row in rows if not isinstance(row.result, stats.Ratio)}
    kept = [row for row in rows if isinstance(row.result, stats.Ratio) and row.other in refusing]
    for row in kept[:LEVELS_NAMED]:
        if row.other == kept[0].other:
            at_level = replace(row.answer, result=row.result)
            yield AtRemainingLevel(row.level_title, statement(evidence, at_level, 1))


def _without_contrast(evidence: Evidence, answers: Answers) -> WithoutContrast:
    pending = [item for item in answers.items if not item.response.energy]
    pending.sort(key=lambda item: item.factor != evidence.primary)
    statements = (statement_with_all(evidence, item, answers.family_of_all) for item in pending)
    of_all = next(filter(None, statements), None)
    if of_all and evidence.excluded.height:
        excluded = evidence.excluded.height
        tried = evidence.usable.height + excluded
        return WithoutContrast(of_all, excluded, tried, exclusion_reasons(evidence))
    if answers.items:
        return WithoutContrast(reason=str(answers.items[0].result))
    return WithoutContrast(nothing=nothing_to_compare(evidence))


def _first(
    evidence: Evidence,
    answers: Answers,
    interactions: Interactions,
    candidates: Sequence[Answer],
) -> First:
    answer = _extreme_answer(evidence, answers, candidates[0])
    outcome = answers.outcome(answer)
    first = First(
        statement(evidence, answer, answers.family),
        outcome,
        answer.level_title,
        answer.baseline_title,
        answers.block_count,
        evidence.imported,
    )
    exact = tuple(exact_shares(answers, answer))
    if has_few_degrees(answer.interval.degrees):
        return replace(first, few_degrees=max(1, int(answer.interval.degrees or 0)), exact=exact)
    dependences = tuple(_dependences(interactions, answer))
    if outcome == "depends":
        title = words.factor_title(answers.dependent[answer.key])
        return replace(first, other_title=title, dependences=dependences)
    decided = None
    if outcome in UNDECIDED:
        others = (item for item in candidates if answers.outcome(item) == "different")
        decided = next((statement(evidence, item, answers.family) for item in others), None)
    ratios: list[LargestRatio] = []
    if evidence.imported and outcome == "different":  # no ranking names the other levels
        ratios += _other_levels(evidence, answers, answer)
    slope = _slope(evidence, answer)
    if slope:
        ratios += _other_factors(answers, answer)
    return replace(
        first,
        winner=winner_of(answers, answer),
        exact=exact,
        decided=decided,
        averaged=_averaged(evidence, answer),
        slope=slope,
        ratios=tuple(ratios),
        dependences=() if slope else dependences,
    )


def _averaged(evidence: Evidence, answer: Answer) -> tuple[str, ...]:
    """Return the factors over whose levels an answer is a mean."""
    if not isinstance(answer.result, NUMBER) or answer.result.strata < 2:
        return ()
    return tuple(words.factor_title(name) for name in evidence.varied if name != answer.factor)


def _dependences(interactions: Interactions, answer: Answer) -> Iterator[Dependence]:
    """Yield the extreme ratios over each factor that affects the answer, as its sentence has it."""
    is_inverse = (
        isinstance(answer.result, stats.Ratio) and above_one(answer.interval) is not answer.interval
    )
    for change in interactions.changes:
        if change.answer is answer:
            ratios = [
                (1 / at.interval.estimate if is_inverse else at.interval.estimate, at.title)
                for at in change.levels
            ]
            ratios.sort(key=itemgetter(0))
            yield Dependence(change.other_title, *ratios[0], *ratios[-1])


def _extreme_answer(evidence: Evidence, answers: Answers, first: Answer) -> Answer:
    """Return the answer on the level that is farthest from the baseline.

    For a factor that is not numeric, it is the answer on the best of the levels with the outcome of
    `first`: the best level against the baseline, or the next best if the baseline is the best.
    """
    same = [
        item
        for item in (*answers.computed(), *answers.differences())
        if item.factor == first.factor and item.response == first.response
    ]
    if are_numbers(evidence.factors.get(first.factor, ())):
        return max(same, key=lambda item: abs(float(item.level) - float(item.baseline)))
    outcome = answers.outcome(first)
    alike = [item for item in same if answers.outcome(item) == outcome]
    pick = max if first.response.more_is_better else min
    return pick(alike, key=lambda item: item.interval.estimate)


def _slope(evidence: Evidence, first: Answer) -> Slope | None:
    """Return the slope over a numeric factor; None if the factor has no line."""
    line = slope_within(evidence, first.response, first.factor)
    if line is None:
        return None
    others = tuple(words.factor_title(name) for name in evidence.varied if name != first.factor)
    return Slope(first.response, words.step(first.factor), line, others)


def _other_factors(answers: Answers, first: Answer) -> list[LargestRatio]:
    """Return the largest ratio of each other factor, the largest of them first."""
    largest: dict[str, Answer] = {}
    for item in answers.computed():
        is_other = item.response == first.response and item.factor != first.factor
        is_larger = _distance(item) > _distance(largest.get(item.factor))
        if is_other and is_larger and answers.outcome(item) == "different":
            largest[item.factor] = item
    return _largest_ratios(largest.values())


def _other_levels(evidence: Evidence, answers: Answers, first: Answer) -> list[LargestRatio]:
    """Return the largest ratios of the other levels of the factor of `first`, if it has words."""
    if are_numbers(evidence.factors.get(first.factor, ())):
        return []
    return _largest_ratios(
        item
        for item in answers.computed()
        if item.response == first.response and item.factor == first.factor
        if item.key != first.key and answers.outcome(item) == "different"
    )


def _largest_ratios(items: Iterable[Answer]) -> list[LargestRatio]:
    """Return the OTHERS_NAMED largest ratios, the larger side of each first."""
    ratios = []
    for item in sorted(items, key=lambda answer: -_distance(answer))[:OTHERS_NAMED]:
        sides = (item.level_title, item.baseline_title)
        level, baseline = sides if item.interval.estimate >= 1 else sides[::-1]
        ratio = math.exp(_distance(item))
        ratios.append(LargestRatio(level, ratio, item.response.title, baseline))
    return ratios


def _distance(answer: Answer | None) -> float:
    """Return the |log ratio|; 0 without an answer."""
    return abs(math.log(answer.interval.estimate)) if answer else 0.0
