"""Answer the study's questions with contrasts within blocks and simultaneous intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.answering.baselines import baseline_in
from wattwire.analysis.answering.confidence import CONFIDENCE, interval_confidence
from wattwire.analysis.answering.disagreement import disagreeing_factor
from wattwire.analysis.answering.single_contrast import contrast, rank_companion
from wattwire.analysis.dataset import Evidence, judges_variants, same_level
from wattwire.analysis.responses import Response, resolve
from wattwire.analysis.topics.controls.numbers import noise
from wattwire.model.variants import FACTOR


def answer_all(evidence: Evidence) -> Answers:
    """Answer each question of the study, with intervals that are simultaneous over all answers."""
    planned = _planned_contrasts(evidence)
    drafts = [_draft(evidence, *item) for item in planned]
    all_runs = evidence.usable
    excluded = evidence.excluded.filter(~evidence.went_another_way)
    if excluded.height:
        all_runs = pl.concat([evidence.usable, excluded], how="diagonal_relaxed")
    family = _family(evidence, evidence.usable, drafts)
    confidence = interval_confidence(evidence)
    level = stats.bonferroni(confidence, family)
    has_excluded = all_runs is not evidence.usable
    family_of_all = _family(evidence, all_runs, drafts) if has_excluded else family
    level_of_all = stats.bonferroni(confidence, family_of_all)
    items = []
    for draft in drafts:
        result = contrast(evidence, evidence.usable, draft, level)
        with_all = contrast(evidence, all_runs, draft, level_of_all) if has_excluded else result
        by_ranks = rank_companion(evidence, draft, level)
        items.append(replace(draft, result=result, with_all=with_all, by_ranks=by_ranks))
    blocks = evidence.usable["block"].n_unique() if evidence.usable.height else 0
    margin = evidence.study.answers.margin
    answers = Answers(
        tuple(items), family, level, margin, blocks, family_of_all,
        noise(evidence), noise(evidence, "plain"),
    )  # fmt: skip
    numbers = [*answers.computed(), *answers.differences()]
    others = {item.key: disagreeing_factor(evidence, answers, item) for item in numbers}
    return replace(answers, dependent={key: other for key, other in others.items() if other})


def _family(evidence: Evidence, frame: pl.DataFrame, drafts: Sequence[Answer]) -> int:
    """Return the number of distinct numeric answers, at least 1.

    The number depends on the available runs and meters, not on the measured values.
    """
    answered = {
        (draft.response.column, draft.factor, str(draft.level))
        for draft in drafts
        if isinstance(contrast(evidence, frame, draft, CONFIDENCE), NUMBER)
    }
    return max(1, len(answered))


def _draft(
    evidence: Evidence, question: str, response: Response, factor: str, level: Any
) -> Answer:
    pending = stats.NotComputable("not computed")
    baseline = baseline_in(evidence, factor, response)
    titles = (evidence.title(factor, level), evidence.title(factor, baseline))
    return Answer(question, response, factor, level, baseline, pending, pending, None, *titles)


def _planned_contrasts(evidence: Evidence) -> list[tuple[str, Response, str, Any]]:
    """Return question, response, factor and level of each contrast.

    Variants have none: the topic `comparison` alone judges them, so that a page has one verdict on
    each.
    """
    planned = []
    judged_elsewhere = FACTOR if judges_variants(evidence) else ""
    for question in evidence.study.questions:
        for name in question.responses:
            for factor in question.factors:
                if factor == judged_elsewhere:
                    continue
                response = resolve(name, evidence.described)
                baseline = baseline_in(evidence, factor, response)
                for level in evidence.factors.get(factor, ()):
                    if not same_level(level, baseline):
                        planned.append((question.id, response, factor, level))
    return planned
