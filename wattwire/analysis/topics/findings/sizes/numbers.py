"""Find steps of latency or loss at a payload size, with known changes between the two sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.charts import Chart, Point, rounded
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.findings.ack_waits import Hit, hits_of
from wattwire.analysis.topics.findings.detector import Detected, Searched
from wattwire.analysis.topics.findings.level_titles import (
    SharedLevels,
    level_title,
    levels_title,
    shared_levels,
    study_key,
)
from wattwire.analysis.topics.findings.runs import Run, settings_with
from wattwire.analysis.topics.findings.sizes.steps import (
    BLOCKS_MIN,
    FACTOR,
    Group,
    SettingComparison,
    Step,
    groups_of,
    mode_differs,
    setting_comparisons,
    steps_of,
)
from wattwire.model import words
from wattwire.model.setting_purposes import FRAGMENT_BYTES, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES

LANDMARKS: tuple[tuple[int, str], ...] = (
    (1448, "tcp_frame"),
    (1472, "udp_frame"),
    (8948, "jumbo_frame"),
    (65_483, "loopback_segment"),
    (65_507, "largest_datagram"),
)
"""Payload in bytes at which transports change what they do → key of the change."""
BUFFERS = (SEND_BUFFER_BYTES, RECEIVE_BUFFER_BYTES, FRAGMENT_BYTES)


@dataclass(frozen=True)
class Change:
    """A known change at a size: the key of a landmark, or a purpose in BUFFERS.

    `granted_bytes` is the effective size of a buffer.
    """

    kind: str
    granted_bytes: int = 0


@dataclass(frozen=True)
class StepGroup:
    """A group with the step, with its medians at the two sizes over blocks.

    `treatment` has the levels of all varied factors but the payload. `jump` is a ratio of
    latencies, or the lost share above the trend.
    """

    treatment: tuple[str, ...]
    blocks: int
    low_us: float
    high_us: float
    jump: stats.Interval


@dataclass(frozen=True)
class SizeStep:
    """A step between two neighbouring sizes, in `rows` of `groups` groups.

    `kind` is "rise" or "fall" of the latency, or "loss". If `is_wait`, only one of the two sizes
    has the 40 ms mode, and `changes` are those without this. `payload_key` and `buffer_keys` are
    lines of a study file that would confirm the cause. `factors` are the names of all varied
    factors but the payload. The first step has the `chart` of all groups.
    """

    kind: str
    low_bytes: int
    high_bytes: int
    rows: tuple[StepGroup, ...]
    groups: int
    factors: tuple[str, ...] = ()
    is_wait: bool = False
    changes: tuple[Change, ...] = ()
    common: tuple[SharedLevels, ...] = ()
    comparisons: tuple[SettingComparison, ...] = ()
    payload_key: str = ""
    buffer_keys: tuple[str, ...] = ()
    chart: Chart | None = None
    confidence: float = CONFIDENCE

    @property
    def is_shown(self) -> bool:
        """Whether the step disappears at all other levels of a setting."""
        return any(comparison.shows for comparison in self.comparisons)

    @property
    def pairs(self) -> int:
        """The number of pairs of runs in the same blocks."""
        return sum(row.blocks for row in self.rows)

    @property
    def jump_min(self) -> float:
        """The smallest jump."""
        return min(row.jump.estimate for row in self.rows)

    @property
    def jump_max(self) -> float:
        """The largest jump."""
        return max(row.jump.estimate for row in self.rows)


@dataclass(frozen=True)
class Sizes(Detected):
    """A finding per pair of sizes and kind of step. `blocks` is the number of complete blocks."""

    found: tuple[SizeStep, ...] = ()
    sizes: int = 1
    blocks: int = 0
    sizes_min: int = stats.SIZES_MIN
    blocks_min: int = BLOCKS_MIN

    @property
    def has_few_sizes(self) -> bool:
        """Whether the test needs more payload sizes."""
        return self.sizes < self.sizes_min

    @property
    def has_few_blocks(self) -> bool:
        """Whether the test needs more blocks."""
        return self.blocks < self.blocks_min


def sizes(searched: Searched) -> Sizes:
    """Search the valid runs for steps at a payload size."""
    evidence, runs = searched.evidence, searched.runs
    count = len(evidence.factors.get(FACTOR, ())) or 1
    if count < stats.SIZES_MIN:
        return Sizes(sizes=count)
    groups = groups_of(evidence, runs)
    steps = steps_of(evidence, groups)
    blocks = max((len(group.rise) for group in groups), default=0)
    if not steps:
        return Sizes(sizes=count, blocks=blocks)
    steps_by_kind: dict[tuple[tuple[int, int], str], list[Step]] = {}
    for step in steps:
        steps_by_kind.setdefault((step.between, step.kind), []).append(step)
    ordered = sorted(steps_by_kind.items(), key=lambda item: item[0])
    hits = hits_of(evidence, runs)
    found = [_size_step(evidence, runs, groups, same_steps, hits) for _, same_steps in ordered]
    found[0] = replace(found[0], chart=_chart(evidence, groups))
    return Sizes(tuple(found), count, blocks)


def _size_step(
    evidence: Evidence,
    runs: Sequence[Run],
    groups: Sequence[Group],
    steps: Sequence[Step],
    hits: Sequence[Hit],
) -> SizeStep:
    low, high = steps[0].between
    is_wait = mode_differs(evidence, steps, hits)
    step_treatments = [step.group.treatment for step in steps]
    return SizeStep(
        steps[0].kind,
        low,
        high,
        tuple(map(_step_group, steps)),
        len(groups),
        tuple(name for name in evidence.varied if name != FACTOR),
        is_wait,
        () if is_wait else tuple(_changes(evidence, runs, low, high)),
        shared_levels(evidence, step_treatments, [group.treatment for group in groups]),
        tuple(setting_comparisons(evidence, groups, steps)),
        _payload_key(low, high),
        tuple(_buffer_keys(evidence, runs, low, high)),
    )


def _step_group(step: Step) -> StepGroup:
    low_us, high_us = step.group.medians_us[step.place : step.place + 2]
    jump = step.interval if step.kind == "loss" else step.interval.exponential()
    levels = tuple(word for _, word in step.group.treatment)
    return StepGroup(levels, step.interval.count, low_us, high_us, jump)


def _changes(evidence: Evidence, runs: Sequence[Run], low: int, high: int) -> Iterator[Change]:
    """Yield the known changes (segment limits and effective buffers) at sizes in [low, high)."""
    for size, key in LANDMARKS:
        if low <= size < high:
            yield Change(key)
    for purpose in BUFFERS:
        for setting in settings_with(evidence, runs, purpose):
            values = {value for run in runs for value in run.in_force(setting)}
            for granted in sorted({int(value) for value in values if value.isdecimal()}):
                # Linux reserves half of a buffer for overhead (socket(7)).
                if low <= granted < high or low <= granted // 2 < high:
                    yield Change(purpose, granted)


def _payload_key(low: int, high: int) -> str:
    """Return the line of a study file with sizes that locate the step more precisely."""
    inside = [size for size, _ in LANDMARKS if low <= size < high]
    near = [value for size in inside[:2] for value in (size, size + 1)]
    return study_key(FACTOR, near or (low, (low + high) // 2, high))


def _buffer_keys(evidence: Evidence, runs: Sequence[Run], low: int, high: int) -> Iterator[str]:
    """Yield the lines of a study file that vary the buffers that the study does not vary."""
    for purpose in BUFFERS:
        for setting in settings_with(evidence, runs, purpose):
            name = f"settings.{setting}"
            if len(evidence.factors.get(name, ())) < 2:
                yield study_key(name, (2 * low, 2 * high))


def _chart(evidence: Evidence, groups: Sequence[Group]) -> Chart:
    """Return the median latency of each group and size; the primary factor is on colour.

    A median that is unknown or infinite, because most messages were lost, has no point.
    """
    names = [name for name in evidence.varied if name != FACTOR]
    primary = evidence.primary if evidence.primary in names else (names[0] if names else "")
    points: list[Point] = []
    for group in groups:
        levels = dict(group.treatment)
        rest = tuple((name, word) for name, word in group.treatment if name != primary)
        colour = level_title(evidence, primary, levels[primary]) if primary else "all"
        for size, value in zip(group.sizes, group.medians_us, strict=True):
            if not math.isfinite(value):
                continue
            points.append(
                {
                    "bytes": max(1, size),
                    "us": rounded(value),
                    "colour": colour,
                    "panel": levels_title(evidence, rest),
                }
            )
    return Chart(
        points,
        tuple(dict.fromkeys(point["colour"] for point in points)),
        words.factor_title(primary) if primary else "",
        panels=tuple(dict.fromkeys(point["panel"] for point in points)),
    )
