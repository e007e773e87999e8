"""Decide the claims of a publication that a study states, by comparisons of treatments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.answering.block_models import fit_of
from wattwire.analysis.answering.confidence import CONFIDENCE, interval_confidence
from wattwire.analysis.answering.disagreement import confidence_at_levels, contradict
from wattwire.analysis.dataset import (
    Evidence,
    all_levels,
    has_levels,
    is_within,
    planned_levels,
    rows_at,
)
from wattwire.analysis.json_values import finite
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.analysis.topics.claims import layer_ratios
from wattwire.analysis.topics.claims.verdicts import (
    REFUTED,
    SHOWN,
    UNDECIDED,
    Comparison,
    DecidedClaim,
    DecidedClaims,
    Levels,
    Result,
)
from wattwire.model import words
from wattwire.model.publication.claims import AT_MOST, EQUAL, LOWER, Claim

SHOWS = {LOWER: ("lower",), EQUAL: ("equivalent",), AT_MOST: ("lower", "equivalent")}
"""Relation of a claim → the outcomes of a comparison that show it."""
Pair = tuple[tuple[Any, ...], tuple[Any, ...]]
"""A treatment of the left side and its partner of the right side."""
FitResult = stats.Fit | stats.TooFew | stats.NotComputable


def claims(evidence: Evidence, answers: Answers) -> DecidedClaims:
    """Decide each claim of the study, with intervals that are simultaneous over all claims.

    The family has the distinct ratios of all claims. It is separate from the family of the answers,
    so that claims do not widen the intervals of the answers. The error of a ratio is pooled over
    comparisons that differ only in numeric levels, because protocols differ in their scatter.
    """
    requested = []
    for claim in evidence.study.claims:
        find = layer_ratios.requested if claim.is_of_layers else _requested
        comparisons = list(find(evidence, claim))
        requested.append((claim, comparisons, _fits(evidence, claim, comparisons)))
    numbers = {
        repr((claim.response, claim.left_layers, claim.right_layers, claim.where,
              item.left, item.right, item.at))
        for claim, comparisons, fits in requested
        for item, fit in zip(comparisons, fits, strict=True)
        if isinstance(_ratio(evidence, claim, item, fit, CONFIDENCE), stats.Interval)
    }  # fmt: skip
    family = max(1, len(numbers))
    level = stats.bonferroni(interval_confidence(evidence), family)
    items = []
    for claim, comparisons, fits in requested:
        ratios = [
            _ratio(evidence, claim, item, fit, level)
            for item, fit in zip(comparisons, fits, strict=True)
        ]
        decided = tuple(
            _decided(evidence, answers, claim, item, ratio, fit)
            for item, ratio, fit in zip(comparisons, ratios, fits, strict=True)
        )
        items.append(_decided_claim(evidence, claim, decided))
    return DecidedClaims(tuple(items), family, level, answers.margin)


def stored(result: DecidedClaims) -> dict[str, Any]:
    """Return the claims as JSON values, each with the ratios that decide it."""
    return {"claims": [_entry(item) for item in result.items]}


def _entry(item: DecidedClaim) -> dict[str, Any]:
    """Return a claim with its comparisons. `reason` states why the claim has none."""
    claim = item.claim
    return {
        "text": claim.text,
        "source": claim.source,
        "question": claim.question,
        "response": claim.response,
        "relation": claim.relation,
        "left_layers": list(claim.left_layers),
        "right_layers": list(claim.right_layers),
        "left_times": claim.left_times,
        "right_times": claim.right_times,
        "verdict": item.verdict,
        "reason": item.reason,
        "comparisons": [_comparison_entry(comparison) for comparison in item.comparisons],
    }


def _comparison_entry(comparison: Comparison) -> dict[str, Any]:
    """Return a ratio of the left to the right side of a claim, or the reason why there is none."""
    result = comparison.result
    interval = result if isinstance(result, stats.Interval) else None
    return {
        "left": dict(comparison.left),
        "right": dict(comparison.right),
        "at": dict(comparison.at),
        "estimate": finite(interval.estimate) if interval else None,
        "low": finite(interval.low) if interval else None,
        "high": finite(interval.high) if interval else None,
        "interval_level": interval.level if interval else None,
        "outcome": comparison.outcome,
        "decision": comparison.decision,
        "reason": "" if interval else str(result),
    }


def _decided_claim(
    evidence: Evidence, claim: Claim, comparisons: tuple[Comparison, ...]
) -> DecidedClaim:
    """Return the claim with its titles, or the reason why it has no comparison."""
    if claim.is_of_layers:
        return DecidedClaim(
            claim,
            comparisons,
            reason="" if comparisons else layer_ratios.why_none(evidence),
            response_title=layer_ratios.RESPONSE_TITLE,
            left_title=words.listed(list(claim.left_layers)),
            right_title=words.listed(list(claim.right_layers)),
            where=tuple(_level_lists(evidence, claim.where)),
        )
    if not comparisons:
        return DecidedClaim(claim, (), claim.unanswerable or _why_not_designed(evidence, claim))
    return DecidedClaim(
        claim,
        comparisons,
        response_title=resolve(claim.response, evidence.described).title,
        left_title=", ".join(_level_lists(evidence, claim.left)),
        right_title=", ".join(_level_lists(evidence, claim.right)),
        where=tuple(_level_lists(evidence, _rest(claim))),
    )


def _level_lists(evidence: Evidence, levels: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    for factor, of_factor in levels.items():
        yield words.listed([evidence.title(factor, level) for level in of_factor])


def _requested(evidence: Evidence, claim: Claim) -> Iterator[Comparison]:
    """Yield the comparisons of a claim without results.

    Combinations of levels that the design does not have on both sides are omitted, since a study
    need not measure every combination.
    """
    if claim.unanswerable:
        return
    designed = [all_levels(entry) for entry in (*evidence.designed, *evidence.skipped)]
    levels_of_by = {
        factor: claim.where.get(factor) or planned_levels(evidence, factor) for factor in claim.by
    }
    rest = _rest(claim)
    for left, right, at in itertools.product(
        _combinations(claim.left), _combinations(claim.right), _combinations(levels_of_by)
    ):
        sides = ({**at, **left}, {**at, **right})
        if left != right and all(
            any(has_levels(levels, side) and is_within(levels, rest) for levels in designed)
            for side in sides
        ):
            yield _titled(evidence, claim, left, right, at)


def _titled(
    evidence: Evidence, claim: Claim, left: Levels, right: Levels, at: Levels
) -> Comparison:
    """Return a comparison without a result, with the names of its levels."""
    sides = [
        {name: level for name, level in side.items() if len(listed[name]) > 1}
        for side, listed in ((left, claim.left), (right, claim.right))
    ]
    return Comparison(
        left,
        right,
        at,
        stats.NotComputable("not computed"),
        left_title=_names(evidence, left),
        right_title=_names(evidence, right),
        at_title=_names(evidence, at),
        varied=" / ".join(filter(None, (_names(evidence, side) for side in sides))),
    )


def _names(evidence: Evidence, levels: Levels) -> str:
    return ", ".join(evidence.title(*level) for level in levels.items())


def _why_not_designed(evidence: Evidence, claim: Claim) -> str:
    """Return the reason why the design has no treatments that a claim compares.

    It names the factors' levels of which the design has none.
    """
    designed = [all_levels(entry) for entry in (*evidence.designed, *evidence.skipped)]
    absent = dict.fromkeys(
        words.listed([evidence.title(factor, level) for level in levels])
        for table in (claim.left, claim.right, claim.where)
        for factor, levels in table.items()
        if not any(is_within(treatment, {factor: levels}) for treatment in designed)
    )
    if absent:
        return f"this campaign has no run with {' or '.join(absent)}"
    return "this campaign has no runs that differ as the claim requires"


def _combinations(levels_by_factor: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for levels in itertools.product(*levels_by_factor.values()):
        yield dict(zip(levels_by_factor, levels, strict=True))


def _fits(
    evidence: Evidence, claim: Claim, comparisons: Sequence[Comparison]
) -> list[FitResult | None]:
    """Return a model for each comparison. Comparisons with the same `_protocols` share it.

    Comparisons of layers have none.
    """
    if claim.is_of_layers:
        return [None] * len(comparisons)
    groups: dict[str, list[Comparison]] = {}
    for item in comparisons:
        groups.setdefault(_protocols(item), []).append(item)
    fits = {key: _fit(evidence, claim, group) for key, group in groups.items()}
    return [fits[_protocols(item)] for item in comparisons]


def _protocols(item: Comparison) -> str:
    """Return a text of the levels of a comparison that are not numbers."""
    return repr(
        [
            (factor, level)
            for levels in (item.left, item.right, item.at)
            for factor, level in levels.items()
            if isinstance(level, (str, bool))
        ]
    )


def _fit(evidence: Evidence, claim: Claim, comparisons: Sequence[Comparison]) -> FitResult | None:
    """Return the model of the answers, fitted to the runs of these comparisons only.

    The result is None without such runs.
    """
    frame = evidence.usable
    response = resolve(claim.response, evidence.described)
    if not frame.height or not measured(frame, response):
        return None
    is_compared = np.zeros(frame.height, dtype=np.bool_)
    for item in comparisons:
        for side in (item.left, item.right):
            is_compared |= rows_at(frame, {**item.at, **side})
    for factor, levels in _rest(claim).items():
        is_compared &= np.any([rows_at(frame, {factor: level}) for level in levels], axis=0)
    if not is_compared.any():
        return None
    return fit_of(evidence, frame.filter(pl.Series(is_compared)), response)


def _rest(claim: Claim) -> dict[str, tuple[Any, ...]]:
    """Return the levels in `where` of factors that do not distinguish the comparisons."""
    return {factor: levels for factor, levels in claim.where.items() if factor not in claim.by}


def _decided(
    evidence: Evidence,
    answers: Answers,
    claim: Claim,
    item: Comparison,
    result: Result,
    fit: FitResult | None,
) -> Comparison:
    """Return the comparison with its ratio, the ratio's outcome and the decision on the claim."""
    if not isinstance(result, stats.Interval):
        return replace(item, result=result)
    outcome = _outcome(answers, claim, result)
    if _levels_disagree(answers, claim, item, fit, outcome, interval_confidence(evidence)):
        outcome = "depends"
    return replace(item, result=result, outcome=outcome, decision=_decision(claim, outcome))


def _outcome(answers: Answers, claim: Claim, interval: stats.Interval) -> str:
    """Return the conclusion of an answer, with the direction of a difference."""
    conclusion = _conclusion(answers, claim, interval)
    if conclusion != "different":
        return conclusion
    return "lower" if interval.estimate < 1 else "higher"


def _conclusion(answers: Answers, claim: Claim, interval: stats.Interval) -> str:
    conclusion = stats.conclusion(interval, answers.margin)
    is_noise = abs(math.log(interval.estimate)) <= answers.noise.get(claim.response, 0.0)
    return "within noise" if conclusion == "different" and is_noise else conclusion


def _levels_disagree(
    answers: Answers,
    claim: Claim,
    item: Comparison,
    fit: FitResult | None,
    pooled: str,
    confidence: float,
) -> bool:
    """Return whether levels of a factor that the claim does not name contradict each other.

    The rule and the levels of the intervals are those of the answers.
    """
    if not isinstance(fit, stats.Fit) or fit.kind != "treatments":
        return False
    strata = list(_strata(fit, list(_pairs(fit, claim, item))))
    level = confidence_at_levels([len(groups) for groups in strata], confidence)
    for groups in strata:
        results = [
            stats.treatment_ratio(fit, group, level, claim.left_times / claim.right_times)
            for group in groups
        ]
        conclusions = [
            (_conclusion(answers, claim, result), result)
            for result in results
            if isinstance(result, stats.Interval)
        ]
        if contradict(conclusions, pooled, answers.margin):
            return True
    return False


def _strata(fit: stats.Fit, pairs: Sequence[Pair]) -> Iterator[list[list[Pair]]]:
    """Yield the pairs at each level of a factor that both sides share, for each such factor."""
    for index in range(len(fit.factors)):
        groups: dict[Any, list[Pair]] = {}
        for left, right in pairs:
            if left[index] == right[index]:
                groups.setdefault(left[index], []).append((left, right))
        if len(groups) > 1:
            yield list(groups.values())


def _decision(claim: Claim, outcome: str) -> str:
    if outcome in ("undecided", "within noise", "depends"):
        return UNDECIDED
    return SHOWN if outcome in SHOWS[claim.relation] else REFUTED


def _ratio(
    evidence: Evidence, claim: Claim, item: Comparison, fit: FitResult | None, level: float
) -> Result:
    """Return the ratio of both sides at confidence `level`, or the reason why there is none.

    The sides are matched over the factors that the claim does not name, as in an answer.
    """
    if claim.is_of_layers:
        return layer_ratios.ratio(evidence, claim, item, level)
    response = resolve(claim.response, evidence.described)
    if evidence.usable.height and not measured(evidence.usable, response):
        return stats.NotComputable("not measured in this campaign")
    for side in (item.left, item.right):
        reason = _why_missing(evidence, response, {**item.at, **side})
        if reason:
            return reason
    if fit is None:
        return stats.NotComputable("no run is valid")
    if not isinstance(fit, stats.Fit):
        return fit
    pairs = list(_pairs(fit, claim, item))
    if not pairs:
        return stats.NotComputable("both sides have no level of the other factors in common")
    return stats.treatment_ratio(fit, pairs, level, claim.left_times / claim.right_times)


def _pairs(fit: stats.Fit, claim: Claim, item: Comparison) -> Iterator[Pair]:
    """Yield the treatments of the left side, each with its partner of the right side."""
    modelled = {factor: index for index, factor in enumerate(fit.factors)}
    left, right = (
        {factor: level for factor, level in side.items() if factor in modelled}
        for side in ({**item.at, **item.left}, {**item.at, **item.right})
    )
    rest = {factor: levels for factor, levels in _rest(claim).items() if factor in modelled}
    for treatment in fit.treatments:
        levels = dict(zip(fit.factors, treatment, strict=True))
        if not (has_levels(levels, left) and is_within(levels, rest)):
            continue
        partner = {**levels, **right}
        for other in fit.treatments:
            if has_levels(dict(zip(fit.factors, other, strict=True)), partner):
                yield treatment, other


def _why_missing(
    evidence: Evidence, response: Response, levels: Levels
) -> stats.NotComputable | None:
    """Return the reason why the treatments with these levels have no value, else None.

    The reason does not name the treatment.
    """
    frame = evidence.usable
    if rows_at(frame, levels).any():
        reason = not_compared.why_emulated(
            evidence, frame, response, levels
        ) or not_compared.why_not(evidence, frame, response, levels)
        name = " ".join(evidence.title(*level) for level in levels.items())
        return stats.NotComputable(str(reason).removeprefix(f"{name}: ")) if reason else None
    for entry in evidence.skipped:
        if has_levels(all_levels(entry), levels):
            return stats.NotComputable(str(entry["skipped"]))
    return stats.NotComputable("no run is valid")
