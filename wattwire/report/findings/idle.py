"""Latency that falls as the rate rises: the cost of waking up between messages.

What: groups of runs that differ in the rate alone, whose median latency is lower at the highest
rate than at the lowest, and does not rise in between.
How: log ratio of the medians inside each block, `stats.block_intervals` over blocks, Bonferroni
over the groups. The ratio must exceed RATIO_MIN and the noise floor of two identical labels.
What it misses: which part wakes up. Idle states of the CPU, its frequency, cold caches and
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
from wattwire.model import words
from wattwire.report.findings.finding import (
    CONFIDENCE,
    Finding,
    Run,
    Silence,
    Treatment,
    by_treatment,
)
from wattwire.report.parts import Column, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "idle",
    {
        "title": "Latency falls as the rate rises",
        "cause": (
            "Between rare messages the CPU enters idle states, lowers its frequency, and other "
            "programs fill the caches. The next message includes the wake-up time; frequent "
            "messages avoid it."
        ),
        "summary": (
            "{falling} of {groups:plural group} of runs that differ only in the rate: at {slow} "
            "the median is {ratios} times that at {fast} ({runs:plural run}; simultaneous "
            "{confidence:confidence} intervals over blocks exclude 1, see the table)."
        ),
        "ratio": "{lowest:number}",
        "ratios": "{lowest:number} to {highest:number}",
        "facts": "Machine facts: {facts}.",
        "confirm": (
            'To confirm: loop = ["open", "closed"] as a factor shows whether the pause is the '
            "cause, since calls back to back have no pause; the same study on another occasion "
            "with idle states disabled (a process that keeps /dev/cpu_dma_latency open at 0), "
            "compared with this one, shows whether idle states are the cause."
        ),
        "table": "Groups whose latency falls as the rate rises",
        "note": "Geometric-mean ratio of the runs' medians with its simultaneous interval.",
        "one_rate": ("Dependence of latency on the rate: not tested, the study has one rate."),
        "few_blocks": "Dependence of latency on the rate: {blocks:plural block}, {needed} needed.",
        "silent": "No fall of latency with rising rate was detected.",
    },
)
RATE_FACTORS = ("rate_hz", "interval_s")
RATIO_MIN = 1.1
RISE_ALLOWED = 1.05
BLOCKS_MIN = 3


@dataclass(frozen=True)
class Group:
    """Runs that differ in the rate alone: log ratio of medians, lowest over highest, by block."""

    treatment: Treatment
    logs: tuple[float, ...]
    medians_us: tuple[float, ...]

    @property
    def falls(self) -> bool:
        """Whether the median never rises by more than RISE_ALLOWED from one rate to the next."""
        pairs = zip(self.medians_us, self.medians_us[1:], strict=False)
        return all(later <= RISE_ALLOWED * earlier for earlier, later in pairs)


def find(evidence: Evidence, runs: Sequence[Run], noise: Mapping[str, float]) -> Finding | Silence:
    """Return the finding over all groups; `noise` is the noise floor of each response."""
    factor = next((name for name in RATE_FACTORS if name in evidence.varied), None)
    if factor is None:
        return Silence(PHRASES("one_rate"))
    rates = _rates(evidence, factor, runs)
    groups = _groups(evidence, factor, runs, rates)
    threshold = max(math.log(RATIO_MIN), noise.get("latency_p50_us", 0.0))
    level = stats.bonferroni(CONFIDENCE, max(1, len(groups)))
    falling = []
    for group, interval in zip(
        groups, stats.block_intervals([group.logs for group in groups], level), strict=True
    ):
        if not isinstance(interval, stats.Interval):
            continue
        if interval.low > 0 and interval.estimate > threshold and group.falls:
            falling.append((group, interval))
    if not falling:
        blocks = max((len(group.logs) for group in groups), default=0)
        if blocks < BLOCKS_MIN:
            return Silence(PHRASES("few_blocks", blocks=blocks, needed=BLOCKS_MIN))
        return Silence(PHRASES("silent"))
    return _finding(evidence, factor, falling, groups, rates)


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


def _finding(
    evidence: Evidence,
    factor: str,
    falling: Sequence[tuple[Group, stats.Interval]],
    groups: Sequence[Group],
    rates: Sequence[str],
) -> Finding:
    ratios = [math.exp(interval.estimate) for _, interval in falling]
    runs = sum(len(group.logs) * 2 for group, _ in falling)
    slow, fast = (words.level_title(factor, rate, {}) for rate in (rates[0], rates[-1]))
    sentences = [
        PHRASES(
            "summary",
            falling=len(falling),
            groups=len(groups),
            slow=slow,
            ratios=_span(ratios),
            fast=fast,
            runs=runs,
            confidence=CONFIDENCE,
        )
    ]
    hosts = evidence.reader.machine.get("hosts", {}).values()
    facts = {f["key"]: f["value"] for host in hosts for f in host.get("facts", [])}
    idle_facts = [
        f"{k.replace('_', ' ')} {v}" for k, v in facts.items() if "idle" in k or "govern" in k
    ]
    if idle_facts:
        sentences.append(PHRASES("facts", facts=", ".join(idle_facts)))
    return Finding(
        "rate-dependent-latency",
        PHRASES("title"),
        False,
        PHRASES("cause"),
        tuple(sentences),
        PHRASES("confirm"),
        (_table(evidence, factor, falling),),
    )


def _span(ratios: Sequence[float]) -> Phrase:
    lowest, highest = min(ratios), max(ratios)
    if words.number(lowest) == words.number(highest):
        return PHRASES("ratio", lowest=lowest)
    return PHRASES("ratios", lowest=lowest, highest=highest)


def _table(
    evidence: Evidence, factor: str, falling: Sequence[tuple[Group, stats.Interval]]
) -> Table:
    rows = []
    for group, interval in falling:
        ratio = stats.Interval(
            math.exp(interval.estimate), math.exp(interval.low), math.exp(interval.high),
            interval.level, interval.count, interval.method, interval.degrees,
        )  # fmt: skip
        rows.append(
            dict(group.treatment)
            | {
                "blocks": len(group.logs),
                "ratio": ratio,
                "medians": " → ".join(words.number(value) for value in group.medians_us),
            }
        )
    return Table(
        "finding-rate-dependent-latency",
        PHRASES("table"),
        [
            *(column for column in factor_columns(evidence) if column.key != factor),
            Column("blocks", "blocks", "measured"),
            Column("ratio", "slowest / fastest rate", "measured"),
            Column("medians", "medians, from slow to fast, µs"),
        ],
        rows,
        PHRASES("note"),
    )
