"""Steps at a payload size: jumps of latency or loss by more than the size explains.

What: neighbouring payload sizes between which the median latency or the lost share jumps, in
runs that differ in the payload alone.
How: `stats.step_logs` and `stats.loss_excess` inside each block, `stats.block_intervals` over
blocks, Bonferroni over all pairs of sizes in all groups. A step of latency must exceed
STEP_MIN, one of loss LOSS_MIN. Candidate causes are sizes at which something is known to change
between the two payloads, and the 40 ms mode where it is on one side only.
What it misses: the limits stated in `stats.steps`; which of several candidates is the cause.
Reference: RFC 791, RFC 894 (a frame of 1,500 B); Linux drivers/net/loopback.c (its MTU, 64 KiB).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.model.setting_purposes import FRAGMENT_BYTES, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES
from wattwire.report import figures
from wattwire.report.findings.delayed_ack import Hit
from wattwire.report.findings.finding import (
    CONFIDENCE,
    Finding,
    Run,
    Silence,
    Treatment,
    by_treatment,
    setting_purposes,
    settings_with,
    shared_levels,
    study_key,
    told_levels,
)
from wattwire.report.parts import Column, Figure, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "sizes",
    {
        "rise_title": "Latency rises in a step between {low:count} and {high:count} B",
        "fall_title": "Latency falls in a step between {low:count} and {high:count} B",
        "loss_title": "Loss rises in a step between {low:count} and {high:count} B",
        "waits": (
            "On one side of the step messages wait 40 ms or twice that for an acknowledgement, on "
            "the other they do not: see the finding above for the cause. A payload that fills a "
            "segment does not wait."
        ),
        "known_change": "Known change between the two sizes: {causes:listed}.",
        "no_known_change": "No known change between the two sizes.",
        # Known changes: sizes on a network, and buffers.
        "tcp_frame": (
            "a TCP segment of one Ethernet frame (1,448 B of payload at an MTU of 1,500)"
        ),
        "udp_frame": (
            "a UDP datagram of one Ethernet frame (1,472 B of payload at an MTU of 1,500)"
        ),
        "jumbo_frame": "a TCP segment of one jumbo frame (8,948 B at an MTU of 9,000)",
        "loopback_segment": (
            "the largest TCP segment of the loopback device (65,483 B at an MTU of 65,536)"
        ),
        "largest_datagram": "the largest UDP datagram (65,507 B of payload)",
        "send_buffer": "the socket's send buffer ({granted:count} B granted)",
        "receive_buffer": "the socket's receive buffer ({granted:count} B granted)",
        "fragment": "the fragmentation threshold of the middleware ({granted:count} B granted)",
        # Evidence.
        "summary": (
            "{steps} of {groups:plural group} of runs that differ only in the payload: {jump} "
            "({pairs:plural pair} of runs in the same blocks; simultaneous {confidence:confidence} "
            "intervals, see the table)."
        ),
        "rise": "the median is {ratios} times the value expected from the neighbouring sizes",
        "fall": "the median is {ratios} times lower at the larger payload",
        "loss": "the lost share is up to {share:percent} above the trend with the size",
        "ratio": "{ratio:number}",
        "ratios": "{lowest:number} to {highest:number}",
        "common": "Common to these groups: {levels}.",
        "setting": (
            "At another level of {setting}, otherwise the same: no step in {compared} of "
            "{groups:plural group}; the difference inside blocks is significant in {clear}."
        ),
        "confirm": (
            "To confirm: {sizes} in addition to the current sizes, to narrow the step down."
        ),
        "confirm_with_buffers": (
            "To confirm: {sizes} in addition to the current sizes, to narrow the step down; "
            "{buffers}: a step caused by a buffer moves with the buffer size."
        ),
        # Table and figure.
        "table": "Groups with the step",
        "note_latency": (
            "Medians over blocks. Geometric mean over blocks with its simultaneous interval."
        ),
        "note_loss": (
            "Medians over blocks. Lost share above the trend with the size, with its simultaneous "
            "interval."
        ),
        "figure": "Median latency by payload",
        "caption": (
            "Each point is the median over blocks of the runs' medians; lines connect measured "
            "sizes and do not describe the sizes between."
        ),
        # Instead of a finding.
        "few_sizes": (
            "Steps at a payload size: {sizes:plural payload size}, {needed} or more needed."
        ),
        "few_blocks": (
            "Steps at a payload size: {blocks:plural block with all sizes/blocks with all sizes}, "
            "{needed} needed."
        ),
        "silent": "No step at a payload size beyond the trend with the size.",
    },
)

FACTOR = "payload_bytes"
STEP_MIN = 1.5
LOSS_MIN = 0.01
KINDS = {
    "rise": (1.0, math.log(STEP_MIN)),
    "fall": (-1.0, math.log(STEP_MIN)),
    "loss": (1.0, LOSS_MIN),
}
"""Kind of a step → the sign that makes it positive, and the smallest step reported."""
JUMPS = {
    "rise": "found / expected",
    "fall": "smaller / larger",
    "loss": "lost above the trend",
}
"""Kind of a step → heading of its column."""
BLOCKS_MIN = 3
LANDMARKS: tuple[tuple[int, Phrase], ...] = (
    (1448, PHRASES("tcp_frame")),
    (1472, PHRASES("udp_frame")),
    (8948, PHRASES("jumbo_frame")),
    (65_483, PHRASES("loopback_segment")),
    (65_507, PHRASES("largest_datagram")),
)
BUFFERS = (SEND_BUFFER_BYTES, RECEIVE_BUFFER_BYTES, FRAGMENT_BYTES)


@dataclass(frozen=True)
class Group:
    """Runs that differ in the payload alone.

    `rise`, `fall` and `loss` have shape (blocks, pairs of sizes): the log of latency over the
    expected one, the log of the larger size's latency over the smaller's, and the lost share
    above the expected one.
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

    `kind` is "rise" or "fall" of latency, with an interval on the log scale, or "loss", with an
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


def find(
    evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit]
) -> tuple[list[Finding], Silence | None]:
    """Return a finding for each pair of sizes and kind of step, or the reason for none."""
    levels = evidence.factors.get(FACTOR, ())
    if len(levels) < stats.SIZES_MIN:
        return [], Silence(PHRASES("few_sizes", sizes=len(levels) or 1, needed=stats.SIZES_MIN))
    groups = _groups(evidence, runs)
    steps = steps_of(groups)
    if not steps:
        blocks = max((len(group.rise) for group in groups), default=0)
        if blocks < BLOCKS_MIN:
            return [], Silence(PHRASES("few_blocks", blocks=blocks, needed=BLOCKS_MIN))
        return [], Silence(PHRASES("silent"))
    steps_by_kind: dict[tuple[tuple[int, int], str], list[Step]] = {}
    for step in steps:
        steps_by_kind.setdefault((step.between, step.kind), []).append(step)
    ordered = sorted(steps_by_kind.items(), key=lambda item: item[0])
    findings = [_finding(evidence, runs, groups, same_steps, hits) for _, same_steps in ordered]
    if findings:
        figure = _figure(evidence, groups)
        findings[0] = Finding(**{**vars(findings[0]), "parts": (*findings[0].parts, figure)})
    return findings, None


def _groups(evidence: Evidence, runs: Sequence[Run]) -> list[Group]:
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


def steps_of(groups: Sequence[Group]) -> list[Step]:
    """Return every step significant at the simultaneous level over all pairs in all groups."""
    group_places = [(group, place) for group in groups for place in range(len(group.sizes) - 1)]
    level = stats.bonferroni(CONFIDENCE, max(1, len(KINDS) * len(group_places)))
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


def _finding(
    evidence: Evidence,
    runs: Sequence[Run],
    groups: Sequence[Group],
    steps: Sequence[Step],
    hits: Sequence[Hit],
) -> Finding:
    low, high = steps[0].between
    kind = steps[0].kind
    if _mode_differs(evidence, steps, hits):
        cause = PHRASES("waits")
    elif causes := candidates(evidence, runs, low, high):
        cause = PHRASES("known_change", causes=causes)
    else:
        cause = PHRASES("no_known_change")
    comparisons = _setting_comparisons(evidence, groups, steps)
    is_shown = any(shown for _, shown in comparisons)
    return Finding(
        f"step-{kind}-{low}-{high}",
        _title(kind, low, high),
        is_shown,
        cause,
        (_summary(evidence, groups, steps), *(sentence for sentence, _ in comparisons)),
        "" if is_shown else _proof_sentence(evidence, runs, low, high),
        (_table(evidence, steps),),
    )


def _title(kind: str, low: int, high: int) -> Phrase:
    if kind == "loss":
        return PHRASES("loss_title", low=low, high=high)
    return PHRASES("rise_title" if kind == "rise" else "fall_title", low=low, high=high)


def _mode_differs(evidence: Evidence, steps: Sequence[Step], hits: Sequence[Hit]) -> bool:
    """Return whether in every group of the step exactly one of the two sizes has the 40 ms mode."""
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


def candidates(evidence: Evidence, runs: Sequence[Run], low: int, high: int) -> list[Phrase]:
    """Return the known changes at sizes in [low, high): landmarks, and buffers in force."""
    causes = [description for size, description in LANDMARKS if low <= size < high]
    for purpose in BUFFERS:
        for setting in settings_with(evidence, runs, purpose):
            values = {value for run in runs for value in run.in_force(setting)}
            granted = sorted({int(value) for value in values if value.isdecimal()})
            # Linux keeps half of a buffer for its own bookkeeping (socket(7)).
            sizes_between = [
                size for size in granted if low <= size < high or low <= size // 2 < high
            ]
            causes += [_buffer(purpose, size) for size in sizes_between]
    return causes


def _buffer(purpose: str, granted: int) -> Phrase:
    if purpose == FRAGMENT_BYTES:
        return PHRASES("fragment", granted=granted)
    is_sending = purpose == SEND_BUFFER_BYTES
    return PHRASES("send_buffer" if is_sending else "receive_buffer", granted=granted)


def _summary(evidence: Evidence, groups: Sequence[Group], steps: Sequence[Step]) -> Phrase:
    summary = PHRASES(
        "summary",
        steps=len(steps),
        groups=len(groups),
        jump=_jump(steps),
        pairs=sum(step.interval.count for step in steps),
        confidence=CONFIDENCE,
    )
    step_treatments = [step.group.treatment for step in steps]
    common = shared_levels(evidence, step_treatments, [group.treatment for group in groups])
    return joined([summary, PHRASES("common", levels=common) if common else ""])


def _jump(steps: Sequence[Step]) -> Phrase:
    """Return how large the step is in its groups."""
    if steps[0].kind == "loss":
        return PHRASES("loss", share=max(step.interval.estimate for step in steps))
    ratios = sorted(math.exp(step.interval.estimate) for step in steps)
    span = (
        PHRASES("ratios", lowest=ratios[0], highest=ratios[-1])
        if len(ratios) > 1
        else PHRASES("ratio", ratio=ratios[0])
    )
    return PHRASES("rise" if steps[0].kind == "rise" else "fall", ratios=span)


def _setting_comparisons(
    evidence: Evidence, groups: Sequence[Group], steps: Sequence[Step]
) -> list[tuple[Phrase, bool]]:
    """Return a comparison for each varied setting with a purpose.

    Each is a sentence, and whether the step disappears at the setting's other levels.
    """
    purposes = setting_purposes(evidence)
    names_with_purpose = {f"settings.{name}" for table in purposes.values() for name in table}
    comparisons = []
    for name in (name for name in evidence.varied if name in names_with_purpose):
        comparison = _setting_comparison(evidence, groups, steps, name)
        if comparison is not None:
            comparisons.append(comparison)
    return comparisons


def _setting_comparison(
    evidence: Evidence, groups: Sequence[Group], steps: Sequence[Step], name: str
) -> tuple[Phrase, bool] | None:
    differences, compared = [], 0
    step_groups = {id(step.group) for step in steps}
    for step in steps:
        step_values = getattr(step.group, step.kind)[:, step.place]
        for other in groups:
            if id(other) in step_groups or not _differ_in(step.group, other, name):
                continue
            other_values = getattr(other, step.kind)
            if other.sizes == step.group.sizes and len(other_values) == len(step_values):
                differences.append(step_values - other_values[:, step.place])
                compared += 1
    if not differences:
        return None
    level = stats.bonferroni(CONFIDENCE, len(differences))
    intervals = stats.block_intervals(differences, level)
    clear = sum(
        isinstance(interval, stats.Interval) and interval.excludes(0.0) for interval in intervals
    )
    setting = words.factor_title(name)
    sentence = PHRASES("setting", setting=setting, compared=compared, groups=compared, clear=clear)
    return sentence, clear == compared


def _differ_in(first: Group, second: Group, name: str) -> bool:
    left, right = dict(first.treatment), dict(second.treatment)
    return [key for key in left if left[key] != right.get(key)] == [name]


def _proof_sentence(evidence: Evidence, runs: Sequence[Run], low: int, high: int) -> Phrase:
    inside = [size for size, _ in LANDMARKS if low <= size < high]
    sizes = [value for size in inside[:2] for value in (size, size + 1)]
    closer = study_key(FACTOR, sizes or (low, (low + high) // 2, high))
    names = [
        f"settings.{setting}"
        for purpose in BUFFERS
        for setting in settings_with(evidence, runs, purpose)
    ]
    not_varied = [name for name in names if len(evidence.factors.get(name, ())) < 2]
    if not not_varied:
        return PHRASES("confirm", sizes=closer)
    keys = " or ".join(study_key(name, (2 * low, 2 * high)) for name in not_varied)
    return PHRASES("confirm_with_buffers", sizes=closer, buffers=keys)


def _table(evidence: Evidence, steps: Sequence[Step]) -> Table:
    kind = steps[0].kind
    rows = []
    for step in steps:
        low, high = step.group.medians_us[step.place : step.place + 2]
        interval = step.interval
        jump = (
            stats.Interval(math.exp(interval.estimate), math.exp(interval.low),
                           math.exp(interval.high), interval.level, interval.count,
                           interval.method, interval.degrees)
            if kind != "loss" else interval
        )  # fmt: skip
        rows.append(
            dict(step.group.treatment)
            | {"blocks": interval.count, "low": low, "high": high, "jump": jump}
        )
    small, large = (f"{words.count(size)} B" for size in steps[0].between)
    return Table(
        f"finding-step-{kind}-{'-'.join(map(str, steps[0].between))}",
        PHRASES("table"),
        [
            *(column for column in factor_columns(evidence) if column.key != FACTOR),
            Column("blocks", "blocks", "measured"),
            Column("low", f"median at {small}", "measured", "µs"),
            Column("high", f"median at {large}", "measured", "µs"),
            Column("jump", JUMPS[kind], "measured"),
        ],
        rows,
        PHRASES("note_loss" if kind == "loss" else "note_latency"),
    )


def _figure(evidence: Evidence, groups: Sequence[Group]) -> Figure:
    points: list[Mapping[str, object]] = []
    names = [name for name in evidence.varied if name != FACTOR]
    primary = evidence.primary if evidence.primary in names else (names[0] if names else "")
    for group in groups:
        levels = dict(group.treatment)
        rest = tuple((k, v) for k, v in group.treatment if k != primary)
        panel = _panel_title(evidence, rest)
        for size, value in zip(group.sizes, group.medians_us, strict=True):
            points.append(
                {
                    "bytes": max(1, size),
                    "us": figures.rounded(value),
                    "colour": _panel_title(evidence, ((primary, levels[primary]),))
                    if primary
                    else "all",
                    "panel": panel,
                }
            )
    return Figure(
        "finding-payload-steps",
        PHRASES("figure"),
        PHRASES("caption"),
        figures.sizes_chart(
            points,
            list(dict.fromkeys(str(point["colour"]) for point in points)),
            words.factor_title(primary) if primary else "",
            list(dict.fromkeys(str(point["panel"]) for point in points)),
        ),
    )


def _panel_title(evidence: Evidence, levels: Treatment) -> str:
    return told_levels(evidence, levels) if levels else ""
