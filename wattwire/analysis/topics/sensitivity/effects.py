"""Estimate the effects of factors and of their interactions by analysis of variance."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire import stats
from wattwire.analysis.answering.block_models import usable_fit
from wattwire.analysis.answering.confidence import interval_confidence
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.sensitivity.violations import ALARM
from wattwire.model import words

SCALES = ("log", "plain")
PAIRS_OF_FACTORS_MAX = 6
PERMUTED = 0.2
"""p value above which (on both scales) an interaction needs no permutation test."""


@dataclass(frozen=True)
class EffectRow:
    """The effect of a factor, or the interaction of two, on a response.

    `effect` is None without an F test, for which there is a `reason`.
    """

    response_title: str
    factor_titles: tuple[str, ...]
    effect: stats.Effect | None
    reason: stats.TooFew | stats.NotComputable | None = None

    @property
    def source(self) -> str:
        """The source of the variation, such as "language × clients"."""
        return " × ".join(self.factor_titles)

    @property
    def statistic(self) -> float | None:
        """The F statistic."""
        return self.effect.statistic if self.effect else None

    @property
    def degrees(self) -> str | None:
        """The degrees of freedom of the source and of the error, such as "1, 10"."""
        return f"{self.effect.degrees}, {self.effect.error_degrees}" if self.effect else None

    @property
    def p(self) -> float | None:
        """The p value of the F test."""
        return self.effect.p if self.effect else None

    @property
    def permuted(self) -> float | None:
        """The p value of a permutation test of an interaction."""
        return self.effect.permuted_p if self.effect else None

    @property
    def omega(self) -> stats.Interval | stats.TooFew | stats.NotComputable | None:
        """The share of the variation (partial ω²), or the reason why there is none."""
        return self.effect.omega_squared if self.effect else self.reason


@dataclass(frozen=True)
class Interaction:
    """An interaction of two factors that a test on one scale detects.

    `p` and `permuted_p` are those on the study's `scale`, `other_p` that on the `other_scale`.
    """

    response_title: str
    factor_titles: tuple[str, ...]
    scale: str
    other_scale: str
    p: float
    permuted_p: float | None
    other_p: float

    @property
    def is_found(self) -> bool:
        """Whether the test on the study's scale detects the interaction."""
        return self.p < ALARM

    @property
    def is_found_on_other(self) -> bool:
        """Whether the test on the other scale detects the interaction."""
        return self.other_p < ALARM

    @property
    def is_undecided(self) -> bool:
        """Whether the two p values on the study's scale disagree."""
        return self.is_found != (self.permuted_p is not None and self.permuted_p < ALARM)


@dataclass(frozen=True)
class Effects:
    """The effects on all responses on the study's `scale`.

    `is_untested` is true if one block gives no test of interactions.
    """

    rows: tuple[EffectRow, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    is_untested: bool = False
    scale: str = SCALES[0]
    permuted_below: float = PERMUTED


def effects_on(evidence: Evidence, responses: Sequence[Response]) -> Effects:
    """Return the analysis of variance of each response, and the detected interactions."""
    scale, confidence = evidence.study.answers.scale, interval_confidence(evidence)
    rows: list[EffectRow] = []
    interactions: list[Interaction] = []
    is_untested = False
    for response in responses:
        fits = {name: usable_fit(evidence, response, name) for name in SCALES}
        fit = fits[scale]
        for factor in evidence.varied:
            effect = (
                stats.main_effect(fit, factor, confidence) if isinstance(fit, stats.Fit) else fit
            )
            rows.append(_row(response, [factor], effect))
        if isinstance(fit, stats.Fit) and fit.kind != "treatments":
            is_untested = len(evidence.varied) > 1
            continue
        for pair in _pairs(evidence):
            effects = _on_both_scales(fits, scale, pair, confidence)
            rows.append(_row(response, pair, effects[scale]))
            interactions += detected(response, pair, effects, scale)
    return Effects(tuple(rows), tuple(interactions), is_untested, scale)


def _pairs(evidence: Evidence) -> Iterator[tuple[str, str]]:
    return itertools.islice(itertools.combinations(evidence.varied, 2), PAIRS_OF_FACTORS_MAX)


def _row(response: Response, factors: Sequence[str], effect: Any) -> EffectRow:
    titles = tuple(map(words.factor_title, factors))
    if isinstance(effect, stats.Effect):
        return EffectRow(response.title, titles, effect)
    return EffectRow(response.title, titles, None, effect)


def _on_both_scales(
    fits: Mapping[str, Any], frozen: str, factors: tuple[str, str], confidence: float
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


def detected(
    response: Response, pair: tuple[str, str], effects: Mapping[str, Any], scale: str
) -> list[Interaction]:
    """Return the interaction of two factors if a test on either scale detects it."""
    other = next(name for name in SCALES if name != scale)
    own, contrary = effects[scale], effects[other]
    if not (isinstance(own, stats.Effect) and isinstance(contrary, stats.Effect)):
        return []
    titles = tuple(map(words.factor_title, pair))
    item = Interaction(response.title, titles, scale, other, own.p, own.permuted_p, contrary.p)
    return [item] if item.is_found or item.is_found_on_other else []
