"""Plan a campaign from a pilot campaign: number of blocks, power, and resolution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answer
from wattwire.analysis.answering.block_models import usable_fit
from wattwire.analysis.answering.confidence import CONFIDENCE, interval_confidence
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import FloatArray, column
from wattwire.stats import planning

ENERGY_SHARE = 0.10
"""Planned resolution of J per message: ± 10 %."""
BLOCKS_MIN = 3
"""Minimum number of blocks with measured power for a prediction of energy."""
Refusal = stats.TooFew | stats.NotComputable
Blocks = int | stats.NotComputable


@dataclass(frozen=True)
class Aim:
    """Aim of the planned campaign: width of the interval (share), margin, and number of blocks."""

    width: float
    margin: float | None
    blocks: int


@dataclass(frozen=True)
class Equivalence:
    """The number of blocks that show equivalence with power POWER, and the planned power.

    `planned_power` is the power of the planned blocks, or None for a single block.
    """

    blocks: Blocks
    planned_power: float | None
    power: float = planning.POWER


@dataclass(frozen=True)
class WidthPrediction:
    """The number of blocks required for the target width.

    `cautious_blocks` applies if the pilot underestimates the scatter. `planned_width` is the width
    that the planned blocks give, or None for a single block. `equivalence` is None without a
    margin.
    """

    blocks: Blocks
    cautious_blocks: Blocks
    planned_width: float | None
    equivalence: Equivalence | None


@dataclass(frozen=True)
class AnswerPrediction:
    """The prediction for one answer of the pilot, or the reason why there is none.

    `response` is a column.
    """

    response: str
    response_title: str
    level_title: str
    baseline_title: str
    result: WidthPrediction | Refusal

    @property
    def width(self) -> WidthPrediction | None:
        """The prediction; None if there is none."""
        return self.result if isinstance(self.result, WidthPrediction) else None

    @property
    def needs_ratios(self) -> bool:
        """Whether there is no prediction because values are not positive."""
        return isinstance(self.result, stats.NotPositive)


@dataclass(frozen=True)
class EnergyResolution:
    """The resolution of J per message with `blocks` blocks, and the measured energy.

    With `needed_blocks`, the resolution is ENERGY_SHARE of the measured energy. It is None if the
    measured energy is not positive.
    """

    spread_w: float
    rate_hz: float
    blocks: int
    resolved_j: float
    message_j: float
    needed_blocks: Blocks | None
    share: float = ENERGY_SHARE

    @property
    def resolved_uj(self) -> float:
        """The resolution in µJ."""
        return 1e6 * self.resolved_j

    @property
    def message_uj(self) -> float:
        """The measured energy in µJ."""
        return 1e6 * self.message_j


@dataclass(frozen=True)
class EnergyPrediction:
    """The prediction of J per message for one treatment; None if its power does not vary."""

    treatment: tuple[str, ...]
    resolution: EnergyResolution | None


@dataclass(frozen=True)
class Prediction:
    """Predictions for all answers, with intervals at `level`, and for measured energy."""

    aim: Aim
    level: float
    answers: tuple[AnswerPrediction, ...]
    energy: tuple[EnergyPrediction, ...]
    confidence: float = CONFIDENCE


def predict(evidence: Evidence, aim: Aim) -> Prediction:
    """Return the predictions for a campaign with this aim, from the pilot's valid runs."""
    answers = answer_all(evidence)
    computed = _distinct([*answers.computed(), *answers.differences()])
    level = stats.bonferroni(interval_confidence(evidence), max(1, len(computed)))
    return Prediction(
        aim,
        level,
        tuple(_prediction(evidence, item, aim, level) for item in computed),
        tuple(_energy(evidence, aim.blocks)),
    )


def _distinct(computed: list[Answer]) -> list[Answer]:
    kept: dict[tuple[str, str, str], Answer] = {}
    for answer in computed:
        kept.setdefault((answer.response.column, answer.factor, str(answer.level)), answer)
    return list(kept.values())


def _prediction(evidence: Evidence, answer: Answer, aim: Aim, level: float) -> AnswerPrediction:
    return AnswerPrediction(
        answer.response.column,
        answer.response.title,
        evidence.title(answer.factor, answer.level),
        evidence.title(answer.factor, answer.baseline),
        _width(evidence, answer, aim, level),
    )


def _width(evidence: Evidence, answer: Answer, aim: Aim, level: float) -> WidthPrediction | Refusal:
    fit = usable_fit(evidence, answer.response)
    if not isinstance(fit, stats.Fit):
        return fit
    pilot = planning.pilot_of(fit, answer.factor, answer.level, answer.baseline)
    if not isinstance(pilot, planning.Pilot):
        return pilot
    several = aim.blocks > 1
    return WidthPrediction(
        planning.blocks_for_width(pilot, aim.width, level),
        planning.blocks_for_width(pilot.cautious, aim.width, level),
        planning.half_width(pilot, aim.blocks, level) if several else None,
        _equivalence(pilot, aim.margin, aim.blocks, level) if aim.margin is not None else None,
    )


def _equivalence(pilot: planning.Pilot, margin: float, blocks: int, level: float) -> Equivalence:
    return Equivalence(
        planning.blocks_for_equivalence(pilot, margin, level),
        planning.equivalence_power(pilot, margin, blocks, level) if blocks > 1 else None,
    )


def _energy(evidence: Evidence, blocks: int) -> Iterator[EnergyPrediction]:
    """Yield the prediction for each treatment with measured power."""
    for key, frame in by_treatment(evidence, evidence.usable).items():
        delta_w = column(frame, "power_window_w") - column(frame, "power_silent_w")
        rates_hz = column(frame, "rate_hz_achieved")
        known = np.isfinite(delta_w) & np.isfinite(rates_hz) & (rates_hz > 0)
        if known.sum() >= BLOCKS_MIN:
            yield energy_prediction(key, delta_w[known], rates_hz[known], blocks)


def energy_prediction(
    treatment: tuple[str, ...], delta_w: FloatArray, rates_hz: FloatArray, blocks: int
) -> EnergyPrediction:
    """Return the resolution t·SE(ΔP)/r with `blocks` blocks.

    `delta_w` and `rates_hz` have one value per block of the pilot.
    """
    spread_w, rate_hz = float(np.std(delta_w, ddof=1)), float(np.mean(rates_hz))
    if spread_w == 0:
        return EnergyPrediction(treatment, None)
    message_j = float(np.mean(delta_w / rates_hz))
    used_blocks = max(2, blocks)
    resolved_j = planning.message_resolution_j(spread_w, rate_hz, used_blocks)
    needed = None
    if message_j > 0:
        needed = planning.blocks_for_message_energy(spread_w, rate_hz, message_j, ENERGY_SHARE)
    resolution = EnergyResolution(spread_w, rate_hz, used_blocks, resolved_j, message_j, needed)
    return EnergyPrediction(treatment, resolution)
