"""Analyse the sensitivity of answers by ranks, shares of variance and checks of assumptions.

Answers do not depend on these analyses. They serve readers who prefer other methods, and they
reveal violated assumptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.answering.answer_types import Answer, Answers
from wattwire.analysis.answering.block_models import block_table, usable_fit
from wattwire.analysis.answering.confidence import CONFIDENCE, interval_confidence
from wattwire.analysis.dataset import Evidence, all_levels, same_level
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.controls.numbers import pairs
from wattwire.analysis.topics.sensitivity.effects import Effects, effects_on
from wattwire.analysis.topics.sensitivity.violations import Violations, violations
from wattwire.model.derived import FloatArray

PAIRS_BY_RANKS_MIN = 6
"""Minimum number of blocks whose values are paired. Fewer are two unpaired samples."""
Estimate = stats.Interval | stats.TooFew | stats.NotComputable
P = float | stats.TooFew | stats.NotComputable


@dataclass(frozen=True)
class RankRow:
    """An answer by ranks: the Hodges–Lehmann ratio, Cliff's δ, and p values of two tests."""

    answer: Answer
    ranked: Estimate
    is_paired: bool
    delta: Estimate
    friedman: P
    quade: P

    @property
    def ratio(self) -> float:
        """The ratio of the answer."""
        return self.answer.interval.estimate

    @property
    def level(self) -> float | None:
        """The exact confidence level of the ratio by ranks; None without one."""
        return self.ranked.level if isinstance(self.ranked, stats.Interval) else None


@dataclass(frozen=True)
class Alarms:
    """The A/A differences beyond the error limit of their treatment, of as many `pairs`.

    `rate` is the interval of the false-positive rate, or states how many pairs it needs.
    """

    alarms: int
    pairs: int
    rate: stats.Interval | stats.TooFew

    @property
    def is_known(self) -> bool:
        """Whether the false-positive rate is known."""
        return isinstance(self.rate, stats.Interval)


@dataclass(frozen=True)
class Sensitivity:
    """Violated assumptions of the intervals, and other analyses of the answers that are ratios."""

    violations: Violations = Violations()
    by_ranks: tuple[RankRow, ...] = ()
    effects: Effects = Effects()
    alarms: Alarms | None = None
    is_imported: bool = False
    blocks_min: int = PAIRS_BY_RANKS_MIN
    confidence: float = CONFIDENCE


def sensitivity(evidence: Evidence, answers: Answers) -> Sensitivity:
    """Return the violations of the intervals' assumptions, and other analyses of the answers."""
    computed = answers.computed()
    violated = violations(evidence, answered_responses(answers))
    if not computed:
        return Sensitivity(violated)
    responses = list(dict.fromkeys(answer.response for answer in computed))
    return Sensitivity(
        violated,
        tuple(_by_ranks(evidence, computed)),
        effects_on(evidence, responses),
        _alarms(evidence, responses),
        evidence.imported,
    )


def answered_responses(answers: Answers) -> list[Response]:
    """Return the responses of the answers with a number."""
    numbers = (*answers.computed(), *answers.differences())
    return list(dict.fromkeys(answer.response for answer in numbers))


def _by_ranks(evidence: Evidence, computed: Sequence[Answer]) -> Iterator[RankRow]:
    distinct: dict[tuple[str, str, str], Answer] = {}
    for answer in computed:
        distinct.setdefault(answer.key, answer)
    for answer in distinct.values():
        response, factor = answer.response, answer.factor
        sides = block_table(evidence, response, factor, [answer.level, answer.baseline])
        levels = [
            level
            for level in evidence.factors[factor]
            if not not_compared.why_not(evidence, evidence.usable, response, {factor: level})
        ]
        of_levels = block_table(evidence, response, factor, levels)
        ranked, delta = companions(sides, interval_confidence(evidence))
        is_paired = len(sides) >= PAIRS_BY_RANKS_MIN
        tests = (_p(stats.friedman(of_levels)), _p(stats.quade(of_levels)))
        yield RankRow(answer, ranked, is_paired, delta, *tests)


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


def _control_treatment(evidence: Evidence, fit: stats.Fit) -> tuple[Any, ...] | None:
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


def _alarms(evidence: Evidence, responses: Sequence[Response]) -> Alarms | None:
    """Return the number of A/A differences beyond the error limit of their treatment.

    The result is None if there are no A/A differences.
    """
    alarms = trials = 0
    for response in responses:
        fit = usable_fit(evidence, response)
        treatment = _control_treatment(evidence, fit) if isinstance(fit, stats.Fit) else None
        if isinstance(fit, stats.Fit) and fit.degrees > 0 and treatment is not None:
            logs = np.log(pairs(evidence, response, "b", "a"))
            limit = stats.repeat_limit(fit, treatment, interval_confidence(evidence))
            alarms += int(np.sum(np.abs(logs) > limit))
            trials += logs.size
    return Alarms(alarms, trials, stats.alarm_rate(alarms, trials)) if trials else None
