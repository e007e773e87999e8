"""Text on steps at a payload size, which `analysis/findings/size_steps.py` detects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.findings import ack_waits
from wattwire.analysis.findings.ack_waits import Hit
from wattwire.analysis.findings.runs import Run, Treatment, settings_with
from wattwire.analysis.findings.size_steps import (
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
from wattwire.report import figures
from wattwire.report.findings.finding import (
    Detector,
    Finding,
    Silence,
    levels_text,
    shared_levels,
    study_key,
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
            "Messages wait 40 or 80 ms for an acknowledgement on only one side of the step. The "
            "finding above gives the cause. A payload that fills a segment does not wait."
        ),
        "known_change": "Known changes between the two sizes: {causes:listed}.",
        "no_known_change": "No change between the two sizes is known.",
        # Known changes at packet sizes and buffer sizes.
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
            "In {steps} of {groups:plural group} of runs that differ only in the payload, "
            "{jump} ({pairs:plural pair} of runs in the same blocks; simultaneous "
            "{confidence:confidence} intervals; see the table)."
        ),
        "rise": "the median is {ratios} times the value expected from the neighbouring sizes",
        "fall": (
            "the median at the smaller payload is {ratios} times the median at the larger payload"
        ),
        "loss": (
            "the share of lost messages exceeds its trend with the payload size by up to "
            "{share:percent}"
        ),
        "ratio": "{ratio:number}",
        "ratios": "{lowest:number} to {highest:number}",
        "common": "Common to these groups: {levels}.",
        "setting": (
            "In {compared} of {groups:plural group}, the step was absent in runs that differ only "
            "in {setting}. In {clear} of these groups, the difference within blocks is "
            "significant."
        ),
        "confirm": "To confirm the cause, also measure {sizes}, to locate the step more precisely.",
        "confirm_with_buffers": (
            "To confirm the cause, also measure {sizes}, to locate the step more precisely, and "
            "vary {buffers}. A step caused by a buffer moves with the buffer size."
        ),
        # Table and figure.
        "table": "Groups with the step",
        "note_latency": (
            "Each of the two medians is computed over blocks. The last column is a geometric mean "
            "over blocks with its simultaneous interval."
        ),
        "note_loss": (
            "Each of the two medians is computed over blocks. The last column is the amount by "
            "which the share of lost messages exceeds its trend with the payload size, with a "
            "simultaneous interval."
        ),
        "figure": "Median latency by payload",
        "caption": (
            "Each point is the median over blocks of the runs' medians. Lines connect the measured "
            "sizes; no size between them was measured."
        ),
        # Reasons for the absence of a finding.
        "few_sizes": (
            "Steps at a payload size were not tested, because the study has "
            "{sizes:plural payload size} and the test needs {needed} or more."
        ),
        "few_blocks": (
            "Steps at a payload size were not tested, because the campaign has {blocks:plural "
            "block with all sizes/blocks with all sizes} and the test needs at least {needed}."
        ),
        "silent": (
            "No step at a payload size was detected beyond the general trend of latency and loss "
            "with the size."
        ),
    },
)


JUMPS = {
    "rise": "measured / expected",
    "fall": "smaller / larger",
    "loss": "lost above the trend",
}
"""Kind of a step → heading of its column."""

LANDMARKS: tuple[tuple[int, Phrase], ...] = (
    (1448, PHRASES("tcp_frame")),
    (1472, PHRASES("udp_frame")),
    (8948, PHRASES("jumbo_frame")),
    (65_483, PHRASES("loopback_segment")),
    (65_507, PHRASES("largest_datagram")),
)
BUFFERS = (SEND_BUFFER_BYTES, RECEIVE_BUFFER_BYTES, FRAGMENT_BYTES)


def find(evidence: Evidence, runs: Sequence[Run]) -> list[Finding | Silence]:
    """Return a finding per pair of sizes and kind of step, or the reason for its absence."""
    levels = evidence.factors.get(FACTOR, ())
    if len(levels) < stats.SIZES_MIN:
        return [Silence(PHRASES("few_sizes", sizes=len(levels) or 1, needed=stats.SIZES_MIN))]
    groups = groups_of(evidence, runs)
    steps = steps_of(evidence, groups)
    if not steps:
        blocks = max((len(group.rise) for group in groups), default=0)
        if blocks < BLOCKS_MIN:
            return [Silence(PHRASES("few_blocks", blocks=blocks, needed=BLOCKS_MIN))]
        return [Silence(PHRASES("silent"))]
    steps_by_kind: dict[tuple[tuple[int, int], str], list[Step]] = {}
    for step in steps:
        steps_by_kind.setdefault((step.between, step.kind), []).append(step)
    ordered = sorted(steps_by_kind.items(), key=lambda item: item[0])
    hits = ack_waits.hits_of(evidence, runs)
    findings = [_finding(evidence, runs, groups, same_steps, hits) for _, same_steps in ordered]
    figure = _figure(evidence, groups)
    findings[0] = replace(findings[0], parts=(*findings[0].parts, figure))
    return [*findings]


def _finding(
    evidence: Evidence,
    runs: Sequence[Run],
    groups: Sequence[Group],
    steps: Sequence[Step],
    hits: Sequence[Hit],
) -> Finding:
    low, high = steps[0].between
    kind = steps[0].kind
    if mode_differs(evidence, steps, hits):
        cause = PHRASES("waits")
    elif causes := candidates(evidence, runs, low, high):
        cause = PHRASES("known_change", causes=causes)
    else:
        cause = PHRASES("no_known_change")
    comparisons = setting_comparisons(evidence, groups, steps)
    is_shown = any(comparison.shows for comparison in comparisons)
    return Finding(
        f"step-{kind}-{low}-{high}",
        _title(kind, low, high),
        is_shown,
        cause,
        (_summary(evidence, groups, steps), *map(_setting_sentence, comparisons)),
        "" if is_shown else _proof_sentence(evidence, runs, low, high),
        (_table(evidence, steps),),
    )


def _title(kind: str, low: int, high: int) -> Phrase:
    if kind == "loss":
        return PHRASES("loss_title", low=low, high=high)
    return PHRASES("rise_title" if kind == "rise" else "fall_title", low=low, high=high)


def candidates(evidence: Evidence, runs: Sequence[Run], low: int, high: int) -> list[Phrase]:
    """Return the known changes (segment limits and effective buffers) at sizes in [low, high)."""
    causes = [description for size, description in LANDMARKS if low <= size < high]
    for purpose in BUFFERS:
        for setting in settings_with(evidence, runs, purpose):
            values = {value for run in runs for value in run.in_force(setting)}
            granted = sorted({int(value) for value in values if value.isdecimal()})
            # Linux reserves half of a buffer for overhead (socket(7)).
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
    """Return a phrase with the size of the step in all groups."""
    if steps[0].kind == "loss":
        return PHRASES("loss", share=max(step.interval.estimate for step in steps))
    ratios = sorted(math.exp(step.interval.estimate) for step in steps)
    span = (
        PHRASES("ratios", lowest=ratios[0], highest=ratios[-1])
        if len(ratios) > 1
        else PHRASES("ratio", ratio=ratios[0])
    )
    return PHRASES("rise" if steps[0].kind == "rise" else "fall", ratios=span)


def _setting_sentence(comparison: SettingComparison) -> Phrase:
    return PHRASES(
        "setting",
        setting=words.factor_title(comparison.setting),
        compared=comparison.compared,
        groups=comparison.compared,
        clear=comparison.clear,
    )


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
    return levels_text(evidence, levels) if levels else ""


DETECTOR = Detector(20, lambda searched: find(searched.evidence, searched.runs))
