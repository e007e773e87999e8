"""Detect latency that decreases as the rate increases, due to wake-ups between messages.

What it detects: groups of runs that differ only in the rate, whose median latency is lower at the
highest rate than at the lowest rate and does not increase between rates.

How: the log ratio of the medians within each block, `stats.block_intervals` over blocks, and
Bonferroni over the groups. The ratio must exceed RATIO_MIN and the A/A noise floor.

What it misses: which component wakes up. Idle states of the CPU, its frequency, cold caches and
interrupt batching all have this effect. Contrasts over rates cannot distinguish them, so the cause
is only a suspicion.

Reference: Linux Documentation/admin-guide/pm/cpuidle.rst.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.confidence import interval_confidence
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.findings.runs import Run, Treatment, by_treatment
from wattwire.model import words

RATE_FACTORS = ("rate_hz", "interval_s")


RATIO_MIN = 1.1


RISE_ALLOWED = 1.05


BLOCKS_MIN = 3


@dataclass(frozen=True)
class Group:
    """Runs that differ only in the rate.

    `logs` has one value per block: the log of the median at the lowest rate over the highest.
    """

    treatment: Treatment
    logs: tuple[float, ...]
    medians_us: tuple[float, ...]

    @property
    def falls(self) -> bool:
        """Whether the median never increases by more than the factor RISE_ALLOWED between rates."""
        pairs = zip(self.medians_us, self.medians_us[1:], strict=False)
        return all(later <= RISE_ALLOWED * earlier for earlier, later in pairs)


def _rates(evidence: Evidence, factor: str, runs: Sequence[Run]) -> list[str]:
    """Return the words of the rates that have runs, in ascending order of the rate."""
    levels_with_runs = {words.plain(run.levels.get(factor)) for run in runs}
    levels = sorted(evidence.factors[factor], reverse=factor == "interval_s")
    return [words.plain(level) for level in levels if words.plain(level) in levels_with_runs]


def _groups(
    evidence: Evidence, factor: str, runs: Sequence[Run], rates: Sequence[str]
) -> list[Group]:
    usable = [run for run in runs if math.isfinite(run.p50_us) and run.p50_us > 0]
    groups = []
    for treatment, members in by_treatment(evidence, usable, (factor,)).items():
        by_rate: dict[str, dict[int, float]] = {}
        for run in members:
            by_rate.setdefault(words.plain(run.levels.get(factor)), {})[run.block] = run.p50_us
        present = [rate for rate in rates if rate in by_rate]
        if len(present) < 2:
            continue
        slow, fast = by_rate[present[0]], by_rate[present[-1]]
        logs = tuple(math.log(slow[block] / fast[block]) for block in slow if block in fast)
        medians = tuple(float(np.median(list(by_rate[rate].values()))) for rate in present)
        groups.append(Group(treatment, logs, medians))
    return groups


@dataclass(frozen=True)
class Falls:
    """Groups whose latency decreases as the rate increases, each with an interval (log scale)."""

    factor: str
    rates: tuple[str, ...]
    groups: tuple[Group, ...]
    falling: tuple[tuple[Group, stats.Interval], ...]

    @property
    def block_count(self) -> int:
        """The number of blocks of the group with the most blocks."""
        return max((len(group.logs) for group in self.groups), default=0)


def falls_of(evidence: Evidence, runs: Sequence[Run], noise: Mapping[str, float]) -> Falls | None:
    """Return the groups, and those whose latency decreases; None if no rate varies.

    `noise` maps responses to noise floors.
    """
    factor = next((name for name in RATE_FACTORS if name in evidence.varied), None)
    if factor is None:
        return None
    rates = _rates(evidence, factor, runs)
    groups = _groups(evidence, factor, runs, rates)
    threshold = max(math.log(RATIO_MIN), noise.get("latency_p50_us", 0.0))
    level = stats.bonferroni(interval_confidence(evidence), max(1, len(groups)))
    intervals = stats.block_intervals([group.logs for group in groups], level)
    falling = tuple(
        (group, interval)
        for group, interval in zip(groups, intervals, strict=True)
        if isinstance(interval, stats.Interval)
        and interval.low > 0
        and interval.estimate > threshold
        and group.falls
    )
    return Falls(factor, tuple(rates), tuple(groups), falling)
