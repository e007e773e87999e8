"""Sentences on a pilot's predictions for a campaign, which `wattwire plan` prints."""

from __future__ import annotations

from collections.abc import Iterator

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.pilot import (
    ENERGY_SHARE,
    Aim,
    AnswerPrediction,
    Blocks,
    EnergyPrediction,
    Equivalence,
    Prediction,
    WidthPrediction,
)
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats import planning

PHRASES = Phrases(
    "pilot",
    {
        "no_answer": (
            "the number of blocks cannot be predicted, because the pilot has no numeric answer"
        ),
        "level": (
            "each interval is at {level:confidence}, for a joint level of "
            "{confidence:confidence} over {answers:plural answer}"
        ),
        "contrast": "{response}, {level} / {baseline}",
        "needs_ratios": ("{contrast}: cannot be planned, because planning needs ratios ({reason})"),
        "not_planned": "{contrast}: cannot be planned ({reason})",
        "width": (
            "{contrast}: {blocks} for ± {width:percent} ({cautious_blocks} if the pilot "
            "underestimates the scatter)"
        ),
        "planned_width": "the {blocks} planned give ± {width:percent}",
        "equivalence": (
            "{blocks} to show equivalence within ± {margin:percent} with power {power:g}{planned}"
        ),
        "planned_power": " (the planned blocks have power {power:number 2})",
        "blocks": "{blocks:plural block}",
        "no_blocks": "{reason}",
        "no_energy": (
            "J per message: no meter measured power in three blocks of the pilot, so its "
            "resolution cannot be predicted"
        ),
        "all_runs": "all runs",
        "constant_power": (
            "J per message, {treatment}: cannot be predicted, because the power is equal in all "
            "blocks of the pilot"
        ),
        "energy": (
            "J per message, {treatment}: power differs by {spread_w:number 2} W from block to "
            "block at {rate_hz:number 3} messages/s, so {blocks} blocks resolve "
            "{resolved_uj:number 2} µJ"
        ),
        "energy_blocks": (
            "± {share:percent} of the pilot's {message_uj:number 2} µJ needs {blocks}"
        ),
    },
)


def lines(evidence: Evidence, prediction: Prediction) -> Iterator[Phrase]:
    """Yield a line per answer of the pilot, followed by lines on energy."""
    answers = prediction.answers
    if not answers:
        yield PHRASES("no_answer")
    else:
        yield PHRASES("level", level=prediction.level, answers=len(answers), confidence=CONFIDENCE)
        for answer in answers:
            yield _answer(evidence, answer, prediction.aim)
    for treatment in prediction.energy:
        yield energy(treatment)
    if not prediction.energy:
        yield PHRASES("no_energy")


def _answer(evidence: Evidence, prediction: AnswerPrediction, aim: Aim) -> Phrase:
    answer, result = prediction.answer, prediction.result
    contrast = PHRASES(
        "contrast",
        response=answer.response.title,
        level=evidence.title(answer.factor, answer.level),
        baseline=evidence.title(answer.factor, answer.baseline),
    )
    if isinstance(result, stats.NotPositive):
        return PHRASES("needs_ratios", contrast=contrast, reason=result)
    if not isinstance(result, WidthPrediction):
        return PHRASES("not_planned", contrast=contrast, reason=result)
    width = PHRASES(
        "width",
        contrast=contrast,
        blocks=_blocks(result.blocks),
        width=aim.width,
        cautious_blocks=_blocks(result.cautious_blocks),
    )
    planned = Phrase()
    if result.planned_width is not None:
        planned = PHRASES("planned_width", blocks=aim.blocks, width=result.planned_width)
    return joined([width, planned, _equivalence(result.equivalence, aim.margin)], "; ")


def _equivalence(equivalence: Equivalence | None, margin: float | None) -> Phrase:
    if equivalence is None:
        return Phrase()
    planned = Phrase()
    if equivalence.planned_power is not None:
        planned = PHRASES("planned_power", power=equivalence.planned_power)
    return PHRASES(
        "equivalence",
        blocks=_blocks(equivalence.blocks),
        margin=margin,
        power=planning.POWER,
        planned=planned,
    )


def _blocks(blocks: Blocks) -> Phrase:
    if isinstance(blocks, int):
        return PHRASES("blocks", blocks=blocks)
    return PHRASES("no_blocks", reason=blocks)


def energy(prediction: EnergyPrediction) -> Phrase:
    """Return a line on the resolution of the energy per message of a treatment."""
    treatment = ", ".join(prediction.treatment) or PHRASES("all_runs")
    resolution = prediction.resolution
    if resolution is None:
        return PHRASES("constant_power", treatment=treatment)
    line = PHRASES(
        "energy",
        treatment=treatment,
        spread_w=resolution.spread_w,
        rate_hz=resolution.rate_hz,
        blocks=resolution.blocks,
        resolved_uj=1e6 * resolution.resolved_j,
    )
    if resolution.needed_blocks is None:
        return line
    needed = PHRASES(
        "energy_blocks",
        share=ENERGY_SHARE,
        message_uj=1e6 * resolution.message_j,
        blocks=_blocks(resolution.needed_blocks),
    )
    return joined([line, needed], "; ")
