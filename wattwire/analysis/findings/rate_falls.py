"""Detect latency that falls as the rate rises, because of wake-ups between messages.

What: groups of runs that differ only in the rate, whose median latency is lower at the highest rate
than at the lowest and does not increase in between.
How: log ratio of the medians within each block, `stats.block_intervals` over blocks, Bonferroni
over the groups. The ratio must exceed RATIO_MIN and the A/A noise floor.
What it misses: the component that wakes up. Idle states of the CPU, its frequency, cold caches and
interrupt batching all have this effect; contrasts over rates cannot separate them, so the cause
remains a suspicion.
Reference: Linux Documentation/admin-guide/pm/cpuidle.rst; measurement by run summaries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.findings.runs import CONFIDENCE, Run, Treatment, by_treatment
from wattwire.model import words

RATE_FACTORS = ("rate_hz", "interval_s")


RATIO_MIN = 1.1


RISE_ALLOWED = 1.05


BLOCKS_MIN = 3


@dataclass(frozen=True)
class Group:
    """Runs that differ only in the rate: log ratio of medians, lowest over highest, by block."""

    treatment: Treatment
    logs: tuple[float, ...]
    medians_us: tuple[float, ...]

    @property
    def falls(self) -> bool:
        """Whether the median never increases by more than RISE_ALLOWED between rates."""
        pairs = zip(self.medians_us, self.medians_us[1:], strict=False)
        return all(later <= RISE_ALLOWED * earlier for earlier, later in pairs)


def _rates(evidence: Evidence, factor: str, runs: Sequence[Run]) -> list[str]:
    """Return the rate's levels with runs, slowest first, as words."""
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
    """Groups whose latency decreases as the rate increases, each with its log-scale interval."""

    factor: str
    rates: tuple[str, ...]
    groups: tuple[Group, ...]
    falling: tuple[tuple[Group, stats.Interval], ...]

    @property
    def block_count(self) -> int:
        """The largest number of blocks of any group."""
        return max((len(group.logs) for group in self.groups), default=0)


def falls_of(evidence: Evidence, runs: Sequence[Run], noise: Mapping[str, float]) -> Falls | None:
    """Return the groups, and those whose latency falls; None if no rate varies.

    `noise` is by response.
    """
    factor = next((name for name in RATE_FACTORS if name in evidence.varied), None)
    if factor is None:
        return None
    rates = _rates(evidence, factor, runs)
    groups = _groups(evidence, factor, runs, rates)
    threshold = max(math.log(RATIO_MIN), noise.get("latency_p50_us", 0.0))
    level = stats.bonferroni(CONFIDENCE, max(1, len(groups)))
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
