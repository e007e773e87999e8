"""Collect what a paper's section on methods states, from the campaign's records alone.

Other topics state sentences of their own, such as `environment` and `stopping`; their parts join
the text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.not_compared import FAILED_MAX
from wattwire.analysis.topics.comparison.result import ComparedVariants
from wattwire.analysis.topics.design.numbers import Design as PlannedDesign
from wattwire.analysis.topics.methods.design import Design, Level, design, named_levels
from wattwire.analysis.topics.methods.meters import Meters, meters
from wattwire.analysis.topics.methods.statistics import (
    Statistics,
    VariantMethod,
    statistics,
    variant_method,
)
from wattwire.model.derived import column
from wattwire.model.validity import VALIDITY

STUDY = "study.json"


@dataclass(frozen=True)
class Conduct:
    """The phases of a run (s), and the warm-up: a number of calls or a time; 0 if it has none.

    `window_s` is the median length of the window, None if unknown.
    """

    baseline_s: float = 0.0
    window_s: float | None = None
    warmup_calls: int = 0
    warmup_s: float = 0.0


@dataclass(frozen=True)
class Reason:
    """A reason for exclusion with its number of runs."""

    reason: str
    runs: int


@dataclass(frozen=True)
class Verdicts:
    """How many runs are used, and why the others are not.

    `repeats` counts attempts that repeat an excluded run, `untried` planned runs without attempt.
    """

    limits: tuple[Level, ...] = ()
    used: int = 0
    runs: int = 0
    reasons: tuple[Reason, ...] = ()
    repeats: int = 0
    untried: int = 0


@dataclass(frozen=True)
class Deliveries:
    """Sums over the valid runs, including the warm-up."""

    expected: float
    received: float
    failed: float
    lost: float
    failed_max: float = FAILED_MAX


@dataclass(frozen=True)
class Methods:
    """The methods of a campaign.

    An imported campaign has only its `source`, the number of runs, and the statistics.
    `is_study_edited` is true if the study was edited after the campaign began, so that it registers
    neither margin nor limits. `deliveries` is None if a count is unknown.
    """

    is_imported: bool = False
    source: str = ""
    edited: tuple[str, ...] = ()
    is_study_edited: bool = False
    design: Design = Design()
    conduct: Conduct = Conduct()
    meters: Meters = Meters()
    verdicts: Verdicts = Verdicts()
    deliveries: Deliveries | None = None
    statistics: Statistics = Statistics()
    variants: VariantMethod | None = None


def methods(
    evidence: Evidence, answers: Answers, compared: ComparedVariants, planned: PlannedDesign
) -> Methods:
    """Return the methods of a campaign: design, runs, meters, exclusions and statistics."""
    computed = statistics(evidence, answers)
    if evidence.imported:
        runs = Verdicts(used=evidence.usable.height, runs=evidence.attempts.height)
        return Methods(True, evidence.study.source or "", verdicts=runs, statistics=computed)
    return Methods(
        edited=tuple(evidence.edited),
        is_study_edited=STUDY in evidence.edited,
        design=design(evidence),
        conduct=_conduct(evidence, planned),
        meters=meters(evidence),
        verdicts=_verdicts(evidence),
        deliveries=_deliveries(evidence),
        statistics=computed,
        variants=variant_method(compared),
    )


def _conduct(evidence: Evidence, planned: PlannedDesign) -> Conduct:
    return Conduct(
        evidence.study.plan.baseline_s,
        planned.window_s,
        evidence.warmup_calls,
        evidence.study.plan.warmup_s,
    )


def _verdicts(evidence: Evidence) -> Verdicts:
    codes = Counter(
        code.replace("_", " ")
        for run in evidence.excluded["run"].to_list()
        for code in {reason["code"]: None for reason in evidence.runs[run].get("reasons", [])}
    )
    return Verdicts(
        named_levels(sorted(evidence.study.stated(VALIDITY).items())),
        evidence.usable.height,
        evidence.usable.height + evidence.excluded.height,
        tuple(Reason(code, runs) for code, runs in codes.most_common()),
        evidence.attempts.height - len(set(evidence.attempts["run"].to_list())),
        evidence.untried(evidence.designed),
    )


def _deliveries(evidence: Evidence) -> Deliveries | None:
    """Return the sums of the counts of valid runs; None if one is unknown or none is expected."""
    names = ("expected", "received_unique", "failed", "lost")
    sums = [float(column(evidence.usable, name).sum()) for name in names]
    if any(value != value for value in sums) or not sums[0]:
        return None
    return Deliveries(*sums)
