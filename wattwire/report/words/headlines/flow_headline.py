"""Sentences on flows at the top of the page: what arrives, and the best alternative by condition.

A mean over conditions, such as a fast and a saturated network, describes none of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wattwire.analysis import not_compared
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.flows.results import FlowResult, results
from wattwire.analysis.topics.ranking.choice import Choice
from wattwire.analysis.topics.ranking.order import factors_of
from wattwire.model.derived import column
from wattwire.report.words.phrases import Phrase, Phrases, joined, sentences_of

PHRASES = Phrases(
    "flow_headline",
    {
        "arrived": (
            "{received:count} of {expected:count} messages of {flow} arrived{where}{otherwise}."
        ),
        "otherwise": ", and {received:count} of {expected:count} otherwise",
        "at": " at {conditions:listed}",
        "in_some": " in {lossy} of {treatments:plural treatment}",
        "everywhere": (
            "{leader} had the {extreme} observed {response} in each of "
            "{conditions:plural condition} ({lowest:number} to {highest:number}{unit}){others}."
        ),
        "by_condition": "{extreme:capital} observed {response}: {leaders:listed}{more}{others}.",
        "leader": "{leader} at {condition} ({value:number}{unit})",
        "more": "; {more:plural more condition}",
        "others": "; “Answers” ranks {others:plural other response}",
        "growth": "{growth:capital}.",
        "lowest": "lowest",
        "highest": "highest",
    },
)

LOST_MIN = 0.01
"""Smallest lost share of a flow that precedes the latencies."""
FLOWS_NAMED, CONDITIONS_NAMED = 3, 3
HEADLINE_CHARS_MAX = 400
"""Three lines of the page."""


def arrivals(evidence: Evidence) -> Phrase:
    """Return a sentence per flow that lost messages, with the largest loss first."""
    by_flow: dict[str, list[FlowResult]] = {}
    for result in results(evidence):
        if result.expected is not None and result.lost is not None and result.expected > 0:
            by_flow.setdefault(result.flow, []).append(result)
    texts = []
    for flow, own in by_flow.items():
        lossy = [item for item in own if _lost_share([item]) >= LOST_MIN]
        # A sum with treatments in which nothing arrives describes neither them nor the others.
        silent = [item for item in lossy if item.lost == item.expected]
        worst = silent or lossy
        if worst:
            expected, lost = _sums(worst)
            text = PHRASES(
                "arrived",
                received=expected - lost,
                expected=expected,
                flow=flow,
                where=_where(evidence, worst, own),
                otherwise=_otherwise([item for item in lossy if item not in worst]),
            )
            texts.append((_lost_share(worst), text))
    texts.sort(key=lambda pair: -pair[0])
    return joined(text for _, text in texts[:FLOWS_NAMED])


def _otherwise(items: Sequence[FlowResult]) -> Phrase:
    """Return what arrived in the other treatments that lost messages, or ""."""
    expected, lost = _sums(items)
    return PHRASES("otherwise", received=expected - lost, expected=expected) if items else Phrase()


def shortened(text: Phrase, compared: str = "") -> Phrase:
    """Return a headline of at most HEADLINE_CHARS_MAX, or its first sentence if that is longer.

    The sentence `compared`, a comparison of two levels in all responses, is left out first, then
    the last sentences. The answers of the page have all of them.
    """
    kept = list(sentences_of(text))
    while len(kept) > 1 and len(joined(kept)) > HEADLINE_CHARS_MAX:
        kept.remove(compared if compared in kept[1:] else kept[-1])
    return joined(kept)


def _sums(items: Sequence[FlowResult]) -> tuple[int, int]:
    return sum(item.expected or 0 for item in items), sum(item.lost or 0 for item in items)


def _lost_share(items: Sequence[FlowResult]) -> float:
    expected, lost = _sums(items)
    return lost / expected


def _where(evidence: Evidence, lossy: Sequence[FlowResult], own: Sequence[FlowResult]) -> Phrase:
    """Return the levels that the lossy treatments share, or their number."""
    if len(lossy) == len(own):
        return Phrase()
    shared, others = [], list(own)
    for index, factor in enumerate(evidence.varied):
        levels = {item.treatment[index] for item in lossy}
        if len(levels) == 1 and levels != {item.treatment[index] for item in own}:
            (level,) = levels
            shared.append(evidence.title_of_word(factor, level))
            others = [item for item in others if item.treatment[index] == level]
    at = PHRASES("at", conditions=shared) if shared else Phrase()
    if len(lossy) == len(others):
        return at
    return joined([PHRASES("in_some", lossy=len(lossy), treatments=len(others)), at], "")


def sentence(evidence: Evidence, choices: Sequence[Choice], growth: Phrase) -> Phrase:
    """Return the best alternative of the first ranked response in each condition, and the growth.

    A condition is a combination of levels of the factors that are no alternatives. The result is ""
    if no response is ranked.
    """
    ranked = [choice for choice in choices if choice.placed]
    if not ranked:
        return Phrase()
    others = PHRASES("others", others=len(ranked) - 1) if len(ranked) > 1 else ""
    texts = [_by_condition(evidence, ranked[0], others)]
    texts += [PHRASES("growth", growth=growth)] if growth else []
    return joined(texts)


def _by_condition(evidence: Evidence, choice: Choice, others: Phrase | str) -> Phrase:
    response, best = choice.response, {}
    for condition, means in _means(evidence, choice).items():
        pick = max if response.more_is_better else min
        leader = pick(means, key=lambda title: means[title])
        best[condition] = (leader, means[leader])
    extreme = PHRASES("highest") if response.more_is_better else PHRASES("lowest")
    unit = f" {response.unit}" if response.unit else ""
    values = [value for _, value in best.values()]
    leaders = {leader for leader, _ in best.values()}
    if len(leaders) == 1:
        return PHRASES(
            "everywhere",
            leader=next(iter(leaders)),
            extreme=extreme,
            response=response.title,
            conditions=len(best),
            lowest=min(values),
            highest=max(values),
            unit=unit,
            others=others,
        )
    named = [
        PHRASES("leader", leader=leader, condition=condition, value=value, unit=unit)
        for condition, (leader, value) in list(best.items())[:CONDITIONS_NAMED]
    ]
    more = len(best) - CONDITIONS_NAMED
    return PHRASES(
        "by_condition",
        extreme=extreme,
        response=response.title,
        leaders=named,
        more=PHRASES("more", more=more) if more > 0 else "",
        others=others,
    )


def _means(evidence: Evidence, choice: Choice) -> dict[str, dict[str, float]]:
    """Return condition → alternative → geometric mean; without void or unbounded values.

    Saturated runs that are left out of the answers are left out here too.
    """
    alternatives = factors_of(evidence)
    means: dict[str, dict[str, float]] = {}
    for key, frame in by_treatment(evidence, evidence.usable).items():
        is_left_out = not_compared.left_out(evidence, frame, choice.response)
        is_void = not_compared.void_not_left_out(evidence, frame, choice.response).any()
        values = column(frame, choice.response.column)[~is_left_out]
        if is_void or not (np.isfinite(values) & (values > 0)).all():
            continue
        titles: tuple[list[str], list[str]] = ([], [])
        for factor, level in zip(evidence.varied, key, strict=True):
            titles[factor in alternatives].append(evidence.title_of_word(factor, level))
        mean = math.exp(float(np.mean(np.log(values))))
        means.setdefault(", ".join(titles[0]), {})[" ".join(titles[1])] = mean
    return means
