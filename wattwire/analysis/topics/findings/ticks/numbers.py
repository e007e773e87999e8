"""Find latencies at multiples of one period: receivers that look only at the ticks of a loop.

What it detects: treatments whose latencies are at multiples of a usual period of loops (PERIODS_US:
from 1 to 100 ms), as if the receiver slept between two looks for the message.

How: treatments that differ only in the payload form a group, because a wait for a tick does not
depend on the payload. A period counts for a group if messages are at its first multiple, and if
either messages are at another multiple too, or the middleware has a setting with the purpose
`reply_wait`. Without this condition, any narrow latency near such a period would be an alarm. If
such a setting varies, the share of messages that take at least one period is compared between runs
of a block.

What it misses: periods that are not in the list, such as that of a delayed acknowledgement, which
has its own detector; runs over several hosts, where the network may have such a latency; looks that
are followed by much work. Work of one period's length has the same latency, so without a contrast
the cause is only a suspicion.

Reference: `wattwire/stats/series/ticks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.findings.detector import Detected, Searched
from wattwire.analysis.topics.findings.level_titles import (
    SharedLevels,
    level_title,
    shared_levels,
)
from wattwire.analysis.topics.findings.run_pairs import (
    BLOCKS,
    FACTOR,
    OTHERWISE,
    PAIRS_NEEDED,
    ComparedShares,
    compared,
    run_pairs,
)
from wattwire.analysis.topics.findings.runs import Run, Treatment, by_treatment, settings_with
from wattwire.model import words
from wattwire.model.setting_purposes import REPLY_WAIT
from wattwire.stats.series.ticks import EARLY, WIDTH

PERIODS_US = (
    1_000.0, 2_000.0, 4_000.0, 5_000.0, 10_000.0, 1e6 / 60, 20_000.0, 25_000.0, 1e6 / 30,
    50_000.0, 100_000.0,
)  # fmt: skip
MULTIPLE_SHARE_MIN = 0.05


@dataclass(frozen=True)
class Hit:
    """A treatment whose latencies are at multiples of a period."""

    treatment: Treatment
    ticks: stats.Ticks


@dataclass(frozen=True)
class TickingTreatment:
    """A treatment with `inside` of `messages` messages at ticks of `period_ms`, in `runs` runs.

    `counts` has the number of messages at each multiple that occurs, as (multiple, number).
    """

    treatment: tuple[str, ...]
    runs: int
    messages: int
    inside: int
    period_ms: float
    counts: tuple[tuple[int, int], ...]

    @property
    def share(self) -> float:
        """The share of messages at a tick, in percent."""
        return 100 * self.inside / self.messages


@dataclass(frozen=True)
class Contrast(ComparedShares):
    """Share of messages that take a period or longer, at two levels of a setting, in run pairs.

    `waiting` and `other` are the titles of the levels.
    """

    setting: str
    waiting: str
    other: str


@dataclass(frozen=True)
class TickWaits:
    """Treatments with latencies at multiples of a period, of `treatments` treatments.

    `confirm` says what would confirm a suspected cause, and `factors` are the settings for FACTOR.
    A message is at a tick if it takes a multiple of the period, and at most `width` of it longer.
    """

    treatments: int
    rows: tuple[TickingTreatment, ...]
    common: tuple[SharedLevels, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    confirm: str = OTHERWISE
    factors: tuple[str, ...] = ()
    pairs_needed: int = PAIRS_NEEDED
    width: float = WIDTH

    @property
    def is_shown(self) -> bool:
        """Whether another level of the setting removes the wait."""
        return any(contrast.proves for contrast in self.contrasts)

    @property
    def periods_ms(self) -> tuple[float, ...]:
        """The different periods in ms."""
        return tuple(sorted({row.period_ms for row in self.rows}))

    @property
    def inside(self) -> int:
        """The number of messages at a tick."""
        return sum(row.inside for row in self.rows)

    @property
    def messages(self) -> int:
        """The number of messages of these treatments."""
        return sum(row.messages for row in self.rows)

    @property
    def share(self) -> float:
        """The share of messages at a tick."""
        return self.inside / self.messages

    @property
    def first_share(self) -> float:
        """The share of the messages at a tick that take one period."""
        return sum(dict(row.counts).get(1, 0) for row in self.rows) / self.inside

    @property
    def runs(self) -> int:
        """The number of runs of these treatments."""
        return sum(row.runs for row in self.rows)


@dataclass(frozen=True)
class Ticks(Detected):
    """The finding over all treatments, if there is one."""

    found: tuple[TickWaits, ...] = ()


def ticks(searched: Searched) -> Ticks:
    """Search the valid runs for latencies at multiples of one period."""
    evidence, runs = searched.evidence, searched.runs
    hits = hits_of(evidence, runs)
    if not hits:
        return Ticks()
    treatments = by_treatment(evidence, runs)
    contrasts = tuple(_contrasts(evidence, runs, hits))
    settings = tuple(f"settings.{name}" for name in settings_with(evidence, runs, REPLY_WAIT))
    waits = TickWaits(
        len(treatments),
        tuple(_ticking_treatment(hit) for hit in hits),
        shared_levels(evidence, (hit.treatment for hit in hits), treatments),
        contrasts,
        BLOCKS if contrasts else FACTOR if settings else OTHERWISE,
        settings,
    )
    return Ticks((waits,))


def _ticking_treatment(hit: Hit) -> TickingTreatment:
    ticks = hit.ticks
    levels = tuple(word for _, word in hit.treatment)
    return TickingTreatment(
        levels, ticks.runs, ticks.total, ticks.inside, ticks.period / 1000, ticks.counts
    )


def hits_of(evidence: Evidence, runs: Sequence[Run]) -> list[Hit]:
    """Return the treatments whose latencies are at multiples of a period, in the study's order."""
    local = [run for run in runs if len(run.hosts) < 2]
    has_setting = bool(settings_with(evidence, local, REPLY_WAIT))
    hits: dict[Treatment, Hit] = {}
    for members in by_treatment(evidence, local, ("payload_bytes",)).values():
        by_payload = by_treatment(evidence, members)
        for period_us in PERIODS_US:
            for hit in _hits_at(by_payload, period_us, has_setting):
                hits.setdefault(hit.treatment, hit)
    return [hits[treatment] for treatment in by_treatment(evidence, local) if treatment in hits]


def _hits_at(
    by_payload: dict[Treatment, list[Run]], period_us: float, has_setting: bool
) -> list[Hit]:
    """Return the hits of a group of treatments at one period."""
    hits = []
    for treatment, members in by_payload.items():
        ticks = stats.ticks_of([run.values_us for run in members], period_us)
        if ticks is not None:
            hits.append(Hit(treatment, ticks))
    counts: dict[int, int] = {}
    for hit in hits:
        for multiple, count in hit.ticks.counts:
            counts[multiple] = counts.get(multiple, 0) + count
    least = MULTIPLE_SHARE_MIN * sum(counts.values())
    occupied = {multiple for multiple, count in counts.items() if count >= least}
    is_period = 1 in occupied and (len(occupied) > 1 or has_setting)
    return hits if is_period else []


def _contrasts(evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit]) -> Iterator[Contrast]:
    """Yield a contrast for each pair of a waiting level and the first level that never waits."""
    for setting in settings_with(evidence, runs, REPLY_WAIT):
        name = f"settings.{setting}"
        levels = [words.plain(level) for level in evidence.factors.get(name, ())]
        waiting = {dict(hit.treatment).get(name) for hit in hits}
        others = [level for level in levels if level not in waiting]
        for level in levels:
            if level in waiting and others:
                contrast = _contrast(evidence, runs, hits, (name, level, others[0]))
                if contrast is not None:
                    yield contrast


def _contrast(
    evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit], setting: tuple[str, str, str]
) -> Contrast | None:
    name, waiting, other = setting
    periods_us = {hit.treatment: hit.ticks.period for hit in hits}
    shares = []
    for slow, fast in run_pairs(evidence, runs, name, waiting, other):
        period_us = periods_us.get(slow.treatment(evidence.varied))
        if period_us is not None:
            shares.append((_share_above(slow, period_us), _share_above(fast, period_us)))
    if not shares:
        return None
    waiting, other = (level_title(evidence, name, word) for word in (waiting, other))
    return Contrast(*compared(shares), name, waiting, other)


def _share_above(run: Run, period_us: float) -> float:
    """Return the share of a run's messages that take at least one period."""
    return float(np.mean(run.values_us >= (1 - EARLY) * period_us))
