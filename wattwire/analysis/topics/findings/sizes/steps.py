"""Detect steps at a payload size: jumps of latency or loss beyond the growth with the size.

What it detects: neighbouring payload sizes between which the median latency or the lost share
jumps, in runs that differ only in the payload.

How: `stats.step_logs` and `stats.loss_excess` within each block, `stats.block_intervals` over
blocks, and Bonferroni over all pairs of sizes in all groups. A step of latency must exceed
STEP_MIN, and a step of loss must exceed LOSS_MIN. Possible causes are known thresholds between the
two payloads, and the 40 ms mode if only one of the two sizes has it.

What it misses: the limits that `changepoint_by_size.py` states, and which possible cause applies.

Reference: RFC 791, RFC 894 (a frame of 1,500 B); Linux drivers/net/loopback.c (its MTU, 64 KiB).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.confidence import interval_confidence
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.findings.ack_waits import Hit
from wattwire.analysis.topics.findings.runs import (
    Run,
    Treatment,
    by_treatment,
    setting_purposes,
)
from wattwire.model import words
from wattwire.model.derived import FloatArray

FACTOR = "payload_bytes"
STEP_MIN = 1.5
LOSS_MIN = 0.01
KINDS = {
    "rise": (1.0, math.log(STEP_MIN)),
    "fall": (-1.0, math.log(STEP_MIN)),
    "loss": (1.0, LOSS_MIN),
}
"""Kind of step → the sign that makes it positive, and the minimum reported step."""
BLOCKS_MIN = 3


@dataclass(frozen=True)
class Group:
    """Runs that differ only in the payload.

    `rise`, `fall` and `loss` have shape (blocks, pairs of sizes). `rise` is the log of the latency
    over the expected latency. `fall` is the log of the larger size's latency over the smaller
    size's latency. `loss` is the lost share above the expected share.
    """

    treatment: Treatment
    sizes: tuple[int, ...]
    rise: FloatArray
    fall: FloatArray
    loss: FloatArray
    medians_us: tuple[float, ...]


@dataclass(frozen=True)
class Step:
    """A step between two neighbouring sizes in one group.

    `kind` is "rise" or "fall" of the latency, with an interval on the log scale, or "loss", with an
    interval of the share. `place` is the index of the smaller size.
    """

    group: Group
    place: int
    kind: str
    interval: stats.Interval

    @property
    def between(self) -> tuple[int, int]:
        """The two sizes in bytes."""
        return self.group.sizes[self.place], self.group.sizes[self.place + 1]


def groups_of(evidence: Evidence, runs: Sequence[Run]) -> list[Group]:
    """Return the groups of runs that have enough sizes, in the study's order."""
    groups = []
    for treatment, members in by_treatment(evidence, runs, (FACTOR,)).items():
        sizes = tuple(sorted({int(run.levels[FACTOR]) for run in members}))
        if len(sizes) < stats.SIZES_MIN:
            continue
        blocks: dict[int, dict[int, Run]] = {}
        for run in members:
            blocks.setdefault(run.block, {})[int(run.levels[FACTOR])] = run
        rows = [
            [runs_by_size[size] for size in sizes]
            for runs_by_size in blocks.values()
            if len(runs_by_size) == len(sizes)
        ]
        p50 = np.array([[run.p50_us for run in row] for row in rows]).reshape(-1, len(sizes))
        lost = np.array([[run.loss_share for run in row] for row in rows]).reshape(-1, len(sizes))
        known = np.isfinite(p50).all(axis=1) & (p50 > 0).all(axis=1)
        pairs = len(sizes) - 1
        logs = [stats.step_logs(sizes, row) for row in p50[known]]
        loss = [stats.loss_excess(sizes, row) for row in lost[np.isfinite(lost).all(axis=1)]]
        medians = tuple(float(v) for v in np.median(p50, axis=0)) if len(rows) else ()
        groups.append(
            Group(
                treatment,
                sizes,
                np.array([rise for rise, _ in logs]).reshape(-1, pairs),
                np.array([fall for _, fall in logs]).reshape(-1, pairs),
                np.array(loss).reshape(-1, pairs),
                medians,
            )
        )
    return groups


def steps_of(evidence: Evidence, groups: Sequence[Group]) -> list[Step]:
    """Return all steps that are significant at the simultaneous level over all pairs and groups."""
    group_places = [(group, place) for group in groups for place in range(len(group.sizes) - 1)]
    level = stats.bonferroni(interval_confidence(evidence), max(1, len(KINDS) * len(group_places)))
    steps = []
    for kind, (sign, threshold) in KINDS.items():
        columns = [sign * getattr(group, kind)[:, place] for group, place in group_places]
        intervals = stats.block_intervals(columns, level)
        for (group, place), interval in zip(group_places, intervals, strict=True):
            if not isinstance(interval, stats.Interval) or interval.low <= 0:
                continue
            if interval.estimate >= threshold:
                steps.append(Step(group, place, kind, interval))
    return steps


def mode_differs(evidence: Evidence, steps: Sequence[Step], hits: Sequence[Hit]) -> bool:
    """Return whether exactly one of both sizes has the 40 ms mode in every group of the step."""
    hit_treatments = {hit.treatment for hit in hits}
    for step in steps:
        sides = [
            tuple(
                (name, str(size) if name == FACTOR else dict(step.group.treatment)[name])
                for name in evidence.varied
            )
            in hit_treatments
            for size in step.between
        ]
        if sides[0] == sides[1]:
            return False
    return True


@dataclass(frozen=True)
class SettingComparison:
    """A step compared with groups that differ only in the level of one setting.

    The difference within blocks is significant in `clear` of the `compared` groups.
    """

    setting: str
    compared: int
    clear: int

    @property
    def setting_title(self) -> str:
        """The title of the setting, for a sentence."""
        return words.factor_title(self.setting)

    @property
    def shows(self) -> bool:
        """Whether the step disappears at all other levels of the setting."""
        return self.clear == self.compared


def setting_comparisons(
    evidence: Evidence, groups: Sequence[Group], steps: Sequence[Step]
) -> list[SettingComparison]:
    """Return a comparison for each varied setting that has a purpose."""
    purposes = setting_purposes(evidence)
    names_with_purpose = {f"settings.{name}" for table in purposes.values() for name in table}
    comparisons = (
        _setting_comparison(groups, steps, name, interval_confidence(evidence))
        for name in evidence.varied
        if name in names_with_purpose
    )
    return [comparison for comparison in comparisons if comparison is not None]


def _setting_comparison(
    groups: Sequence[Group], steps: Sequence[Step], name: str, confidence: float
) -> SettingComparison | None:
    differences = []
    step_groups = {id(step.group) for step in steps}
    for step in steps:
        step_values = getattr(step.group, step.kind)[:, step.place]
        for other in groups:
            if id(other) in step_groups or not _differ_in(step.group, other, name):
                continue
            other_values = getattr(other, step.kind)
            if other.sizes == step.group.sizes and len(other_values) == len(step_values):
                differences.append(step_values - other_values[:, step.place])
    if not differences:
        return None
    level = stats.bonferroni(confidence, len(differences))
    intervals = stats.block_intervals(differences, level)
    clear = sum(
        isinstance(interval, stats.Interval) and interval.excludes(0.0) for interval in intervals
    )
    return SettingComparison(name, len(differences), clear)


def _differ_in(first: Group, second: Group, name: str) -> bool:
    left, right = dict(first.treatment), dict(second.treatment)
    return [key for key in left if left[key] != right.get(key)] == [name]
