"""Analyse the sensitivity of answers by ranks, shares of variance and checks of assumptions.

Answers do not depend on these analyses. They serve readers who prefer other methods, and they
reveal violated assumptions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.answering.answer_types import Answer, Answers
from wattwire.analysis.answering.block_models import block_table, usable_fit
from wattwire.analysis.answering.confidence import CONFIDENCE, interval_confidence
from wattwire.analysis.dataset import Evidence, all_levels, same_level
from wattwire.analysis.error_checks import ALARM
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.controls.numbers import pairs
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.report.parts import Column, Fold, Table, Text
from wattwire.report.words.error_checks import cautions
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "sensitivity",
    {
        "title": "Sensitivity checks: ranks, effect sizes, assumptions",
        "assumed": (
            "Assumption of the intervals: the blocks are independent. Treatments may scatter "
            "differently. {order} In simulations of 2 to 13 treatments in 5 to 20 blocks, "
            "intervals of nominal 95 % were simultaneously correct in at least 94 % of campaigns "
            "with unequal variances (0.25 to 16 times), heavy tails, outliers and autocorrelation "
            "of the machine up to 0.8 between runs. A drift that affects only some treatments "
            "violates the assumption. Outliers widen the intervals. F tests pool the error over "
            "treatments. With few runs, only large violations can be detected."
        ),
        "random_order": (
            "The runs of a block may depend on each other, because their order is random; if "
            "levels of one factor are next to each other, each interval uses only the scatter "
            "between blocks."
        ),
        "unknown_order": (
            "The order of imported runs is unknown; if it is not random, a drift within blocks "
            "adds to the differences."
        ),
        "by_ranks": "By ranks",
        "by_ranks_note": (
            "Each level has one value per block: the mean log response over the combinations of "
            "other factors that have every level in the block. Hodges–Lehmann: with at least "
            "{blocks_min} blocks, the values are paired by block; with fewer blocks, they are two "
            "unpaired samples, and the interval includes the differences between blocks. Cliff's "
            "δ: the probability that a block's value at the first level exceeds a block's value at "
            "the second level, minus the probability that it is lower (Newcombe's method 5, "
            "unpaired). Friedman and Quade: tests of whether any level of the factor differs, by "
            "permutation within blocks. Each interval has the level {confidence:confidence} "
            "separately. The answers are the ratios above."
        ),
        "effects": "Effects on each response",
        "effects_note": (
            "Blocked analysis of variance on the {scale} scale, where an interaction means that "
            "{interaction}. The error is pooled over treatments. The limits of ω² come from a "
            "noncentral F at {confidence:confidence} with at most 10 error degrees of freedom, to "
            "allow for heavy tails. If the p value of an interaction is below {permuted_below:g} "
            "on either scale, a second p value comes from permuting the residuals within blocks. "
            "The results are exploratory."
        ),
        "no_interactions": (
            "One block gives no test of interactions. The table of the ratios at each level of the "
            "other factors shows whether a ratio depends on them."
        ),
        # Meaning of an interaction on each scale.
        "ratios_differ": "the ratios of one factor depend on the level of the other",
        "differences_differ": "the differences of one factor depend on the level of the other",
        "interaction": (
            "{factors:listed}, {response}: on the {scale} scale, {verdict} ({p:p}; p by "
            "permutation: {permuted_p:number 2}){other_scale}{undecided}."
        ),
        "no_sign": "there is no sign that {interaction}",
        "other_scale": "; on the {scale} scale, {verdict} ({p:p})",
        "undecided": ". The two p values on the first scale disagree, so the result is undecided",
        "aa_alarms": (
            "Over all responses, the two labels of the same treatment differed by more than the "
            "{confidence:confidence} error limit in {alarms} of {pairs:plural pair}. {rate}"
        ),
        "rate": "The 95 % interval of the false-positive rate is {low:percent} to {high:percent}.",
        "rate_unknown": (
            "The false-positive rate cannot be estimated: this needs at least {needed:count} A/A "
            "comparisons, and there are only {pairs:count}."
        ),
    },
)

PAIRS_BY_RANKS_MIN = 6
PAIRS_OF_FACTORS_MAX = 6
PERMUTED = 0.2
"""p value above which (on both scales) an interaction needs no permutation test."""
SCALES = {"log": PHRASES("ratios_differ"), "plain": PHRASES("differences_differ")}
"""Scale → meaning of an interaction of two factors on this scale."""


def parts(evidence: Evidence, answers: Answers) -> list[Any]:
    """Return warnings about violated assumptions of the intervals, and the fold of analyses."""
    computed = answers.computed()
    responses = list(dict.fromkeys(answer.response for answer in computed))
    shift_responses = [answer.response for answer in answers.differences()]
    all_responses = list(dict.fromkeys([*responses, *shift_responses]))
    warnings: list[Any] = [
        Text(caution, "warning") for caution in cautions(evidence, all_responses)
    ]
    if not computed:
        return warnings
    contents: list[Any] = [_by_ranks(evidence, computed)]
    effects, sentences = _effects(evidence, responses)
    contents += [effects, *(Text(sentence, "item") for sentence in sentences)]
    contents += [Text(sentence) for sentence in _identical(evidence, responses)]
    order = PHRASES("unknown_order") if evidence.imported else PHRASES("random_order")
    contents.append(Text(PHRASES("assumed", order=order), "note"))
    return [*warnings, Fold(PHRASES("title"), contents)]


def _by_ranks(evidence: Evidence, computed: Sequence[Answer]) -> Table:
    rows = []
    for answer in _distinct(computed):
        sides = block_table(
            evidence, answer.response, answer.factor, [answer.level, answer.baseline]
        )
        levels = [
            level
            for level in evidence.factors[answer.factor]
            if not not_compared.why_not(
                evidence, evidence.usable, answer.response, {answer.factor: level}
            )
        ]
        all_levels = block_table(evidence, answer.response, answer.factor, levels)
        ranked, delta = companions(sides, interval_confidence(evidence))
        rows.append(
            {
                "response": answer.response.title,
                "contrast": f"{evidence.title(answer.factor, answer.level)} / "
                f"{evidence.title(answer.factor, answer.baseline)}",
                "ratio": answer.interval.estimate,
                "ranked": ranked,
                "how": "paired" if len(sides) >= PAIRS_BY_RANKS_MIN else "two samples",
                "level": words.confidence(ranked.level)
                if isinstance(ranked, stats.Interval)
                else None,
                "delta": delta,
                "friedman": _p(stats.friedman(all_levels)),
                "quade": _p(stats.quade(all_levels)),
            }
        )
    return Table(
        "by-ranks",
        PHRASES("by_ranks"),
        [
            Column("response", "response"),
            Column("contrast", "contrast"),
            Column("ratio", "ratio", "measured"),
            Column("ranked", "Hodges–Lehmann ratio [interval]", "measured"),
            Column("how", "method"),
            Column("level", "exact confidence level"),
            Column("delta", "Cliff's δ [interval]", "measured"),
            Column("friedman", "Friedman, p", "measured", digits=2),
            Column("quade", "Quade, p", "measured", digits=2),
        ],
        rows,
        PHRASES("by_ranks_note", blocks_min=PAIRS_BY_RANKS_MIN, confidence=CONFIDENCE),
    )


def companions(sides: FloatArray, confidence: float) -> tuple[Any, Any]:
    """Return the Hodges–Lehmann ratio and Cliff's delta.

    `sides` contains log values and has shape (blocks, 2).
    """
    delta = stats.cliffs_delta(sides[:, 0], sides[:, 1], confidence)
    if not np.isfinite(sides).all():
        return stats.NotComputable("unbounded in a block (loss)"), delta
    upper, lower = np.exp(sides[:, 0]), np.exp(sides[:, 1])
    if sides.shape[0] >= PAIRS_BY_RANKS_MIN:
        return stats.paired_ratio_by_ranks(upper, lower, confidence), delta
    return stats.ratio_by_ranks(upper, lower, confidence), delta


def _p(result: Any) -> Any:
    return result.p if isinstance(result, stats.BlockRanks) else result


def _distinct(computed: Sequence[Answer]) -> list[Answer]:
    first_answers: dict[tuple[str, str, str], Answer] = {}
    for answer in computed:
        first_answers.setdefault((answer.response.column, answer.factor, str(answer.level)), answer)
    return list(first_answers.values())


# -- shares of variance --------------------------------------------------------------------------


def _effects(evidence: Evidence, responses: Sequence[Response]) -> tuple[Table, list[Phrase]]:
    """Return the analysis of variance of each response, and one sentence per interaction."""
    frozen, confidence = evidence.study.answers.scale, interval_confidence(evidence)
    rows: list[dict[str, Any]] = []
    sentences: list[Phrase] = []
    without_test = False
    for response in responses:
        fits = {scale: usable_fit(evidence, response, scale) for scale in SCALES}
        fit = fits[frozen]
        for factor in evidence.varied:
            effect = (
                stats.main_effect(fit, factor, confidence) if isinstance(fit, stats.Fit) else fit
            )
            rows.append(_effect_row(response, [factor], effect))
        pairs = list(
            itertools.islice(itertools.combinations(evidence.varied, 2), PAIRS_OF_FACTORS_MAX)
        )
        if isinstance(fit, stats.Fit) and fit.kind != "treatments":
            without_test, pairs = bool(pairs), []
        for first, second in pairs:
            effects = _on_both_scales(fits, frozen, (first, second), confidence)
            rows.append(_effect_row(response, [first, second], effects[frozen]))
            sentence = interaction_words(response, (first, second), effects, frozen)
            if sentence:
                sentences.append(sentence)
    table = Table(
        "effects",
        PHRASES("effects"),
        [
            Column("response", "response"),
            Column("source", "source"),
            Column("statistic", "F", "measured"),
            Column("degrees", "df"),
            Column("p", "p", "measured", digits=2),
            Column("permuted", "p, permuted in blocks", "measured", digits=2),
            Column("omega", "partial ω² [interval]", "measured"),
        ],
        rows,
        PHRASES(
            "effects_note",
            scale=frozen,
            interaction=SCALES[frozen],
            confidence=CONFIDENCE,
            permuted_below=PERMUTED,
        ),
    )
    if without_test:
        sentences.append(PHRASES("no_interactions"))
    return table, sentences


def _on_both_scales(
    fits: dict[str, Any], frozen: str, factors: tuple[str, str], confidence: float
) -> dict[str, Any]:
    """Return the interaction of two factors on each scale.

    On the study's scale, p also comes from a permutation test if an interaction has a p value below
    PERMUTED.
    """
    effects = {
        scale: stats.interaction(fit, *factors, confidence, permutations=0)
        if isinstance(fit, stats.Fit)
        else fit
        for scale, fit in fits.items()
    }
    notable = [
        effect
        for effect in effects.values()
        if isinstance(effect, stats.Effect) and effect.p < PERMUTED
    ]
    if notable and isinstance(fits[frozen], stats.Fit):
        effects[frozen] = stats.interaction(fits[frozen], *factors, confidence)
    return effects


def _effect_row(response: Response, factors: Sequence[str], effect: Any) -> dict[str, Any]:
    source = " × ".join(words.factor_title(name) for name in factors)
    row: dict[str, Any] = {"response": response.title, "source": source}
    if not isinstance(effect, stats.Effect):
        return row | {"omega": effect}
    return row | {
        "statistic": effect.statistic,
        "degrees": f"{effect.degrees}, {effect.error_degrees}",
        "p": effect.p,
        "permuted": effect.permuted_p,
        "omega": effect.omega_squared,
    }


def interaction_words(
    response: Response, pair: tuple[str, str], effects: dict[str, Any], frozen: str
) -> Phrase | None:
    """Return a sentence on the interaction of two factors, or None if there is no interaction.

    If the two scales disagree, the sentence gives both results.
    """
    if not all(isinstance(effect, stats.Effect) for effect in effects.values()):
        return None
    other_scale = next(scale for scale in SCALES if scale != frozen)
    on_frozen, on_other = effects[frozen].p < ALARM, effects[other_scale].p < ALARM
    permuted_p = effects[frozen].permuted_p
    if not on_frozen and not on_other:
        return None
    there, other = SCALES[frozen], SCALES[other_scale]
    contrary = Phrase()
    if on_frozen != on_other:
        verdict = other if on_other else PHRASES("no_sign", interaction=other)
        contrary = PHRASES(
            "other_scale", scale=other_scale, verdict=verdict, p=effects[other_scale].p
        )
    is_undecided = on_frozen != (permuted_p is not None and permuted_p < ALARM)
    return PHRASES(
        "interaction",
        factors=[words.factor_title(name) for name in pair],
        response=response.title,
        verdict=there if on_frozen else PHRASES("no_sign", interaction=there),
        scale=frozen,
        p=effects[frozen].p,
        permuted_p=permuted_p,
        other_scale=contrary,
        undecided=PHRASES("undecided") if is_undecided else "",
    )


def control_treatment(evidence: Evidence, fit: stats.Fit) -> tuple[Any, ...] | None:
    """Return the treatment of the control runs as the model names it; None if it is not in it."""
    for entry in evidence.planned:
        if entry.get("control"):
            levels = all_levels(entry)
            return next(
                (
                    treatment
                    for treatment in fit.treatments
                    if all(map(same_level, treatment, map(levels.get, fit.factors)))
                ),
                None,
            )
    return None


def _identical(evidence: Evidence, responses: Sequence[Response]) -> list[Phrase]:
    """Return a sentence on the number of A/A differences beyond the error limit of their treatment.

    The result is empty if there are no A/A differences.
    """
    alarms = trials = 0
    for response in responses:
        fit = usable_fit(evidence, response)
        treatment = control_treatment(evidence, fit) if isinstance(fit, stats.Fit) else None
        if isinstance(fit, stats.Fit) and fit.degrees > 0 and treatment is not None:
            logs = np.log(pairs(evidence, response, "b", "a"))
            limit = stats.repeat_limit(fit, treatment, interval_confidence(evidence))
            alarms += int(np.sum(np.abs(logs) > limit))
            trials += logs.size
    if not trials:
        return []
    alarm_rate = stats.alarm_rate(alarms, trials)
    rate = (
        PHRASES("rate", low=alarm_rate.low, high=alarm_rate.high)
        if isinstance(alarm_rate, stats.Interval)
        else PHRASES("rate_unknown", needed=alarm_rate.needed, pairs=alarm_rate.count)
    )
    return [PHRASES("aa_alarms", confidence=CONFIDENCE, alarms=alarms, pairs=trials, rate=rate)]
