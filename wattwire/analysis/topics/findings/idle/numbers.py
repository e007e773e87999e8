"""Find latency that decreases as the rate increases, due to wake-ups between messages.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE, interval_confidence
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.host_facts import facts_of
from wattwire.analysis.topics.findings.detector import Detected, Searched
from wattwire.analysis.topics.findings.runs import Run, Treatment, by_treatment
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


@dataclass(frozen=True)
class FallingGroup:
    """A group whose latency falls, with its number of blocks and the ratio of slow to fast.

    `treatment` has the levels of all varied factors but the rate. `medians_us` are in ascending
    order of the rate.
    """

    treatment: tuple[str, ...]
    blocks: int
    ratio: stats.Interval
    medians_us: tuple[float, ...]


@dataclass(frozen=True)
class RateFalls:
    """Groups whose median latency falls from the rate `slow` to the rate `fast`.

    `factors` are the names of all varied factors but the rate, and `facts` are names and values of
    facts about the hosts. Only a study that varies the pause can show the cause.
    """

    rows: tuple[FallingGroup, ...]
    groups: int
    slow: str
    fast: str
    factors: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    confidence: float = CONFIDENCE
    is_shown: bool = False

    @property
    def ratio_min(self) -> float:
        """The smallest ratio of the median at the lowest rate to that at the highest rate."""
        return min(row.ratio.estimate for row in self.rows)

    @property
    def ratio_max(self) -> float:
        """The largest ratio of the median at the lowest rate to that at the highest rate."""
        return max(row.ratio.estimate for row in self.rows)

    @property
    def runs(self) -> int:
        """The number of compared runs, two per block."""
        return sum(2 * row.blocks for row in self.rows)


@dataclass(frozen=True)
class Idle(Detected):
    """The finding over all groups, if there is one; `blocks` is the number of compared blocks."""

    found: tuple[RateFalls, ...] = ()
    has_rates: bool = False
    blocks: int = 0
    blocks_min: int = BLOCKS_MIN

    @property
    def has_few_blocks(self) -> bool:
        """Whether the test needs more blocks."""
        return self.blocks < self.blocks_min


def idle(searched: Searched) -> Idle:
    """Search the valid runs for latency that falls as the rate rises."""
    evidence = searched.evidence
    factor = next((name for name in RATE_FACTORS if name in evidence.varied), None)
    if factor is None:
        return Idle()
    rates = _rates(evidence, factor, searched.runs)
    groups = _groups(evidence, factor, searched.runs, rates)
    blocks = max((len(group.logs) for group in groups), default=0)
    rows = tuple(_falling_groups(groups, searched.noise, interval_confidence(evidence)))
    if not rows:
        return Idle(has_rates=True, blocks=blocks)
    slow, fast = (words.level_title(factor, rate, {}) for rate in (rates[0], rates[-1]))
    factors = tuple(name for name in evidence.varied if name != factor)
    falls = RateFalls(rows, len(groups), slow, fast, factors, _idle_facts(evidence))
    return Idle((falls,), True, blocks)


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


def _falling_groups(
    groups: Sequence[Group], floors: Mapping[str, float], confidence: float
) -> Iterator[FallingGroup]:
    threshold = max(math.log(RATIO_MIN), floors.get("latency_p50_us", 0.0))
    level = stats.bonferroni(confidence, max(1, len(groups)))
    intervals = stats.block_intervals([group.logs for group in groups], level)
    for group, interval in zip(groups, intervals, strict=True):
        if not isinstance(interval, stats.Interval) or interval.low <= 0:
            continue
        if interval.estimate > threshold and group.falls:
            levels = tuple(word for _, word in group.treatment)
            ratio = interval.exponential()
            yield FallingGroup(levels, len(group.logs), ratio, group.medians_us)


def _idle_facts(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """Return the different facts on idle states and governors of all hosts, as name and value."""
    facts = ((fact["key"], fact["value"]) for _, fact in facts_of(evidence.reader.machine))
    return tuple(
        dict.fromkeys(
            (key.replace("_", " "), str(value))
            for key, value in facts
            if "idle" in key or "govern" in key
        )
    )
