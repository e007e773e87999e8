"""Text on latency that decreases as the rate increases. See `analysis/findings/rate_falls.py`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.findings.rate_falls import BLOCKS_MIN, Falls, Group, falls_of
from wattwire.analysis.findings.runs import Run
from wattwire.analysis.topics.controls.numbers import noise as noise_of
from wattwire.model import words
from wattwire.report.findings.finding import Detector, Finding, Searched, Silence
from wattwire.report.parts import Column, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "idle",
    {
        "title": "Latency falls as the rate rises",
        "cause": (
            "Between infrequent messages, the CPU enters idle states and lowers its frequency, and "
            "other programs evict cached data. The latency of the next message then includes the "
            "recovery. Frequent messages avoid this recovery."
        ),
        "summary": (
            "In {falling} of {groups:plural group} of runs that differ only in the rate, the "
            "median time since the send call at {slow} is {ratios} times the median at {fast} ("
            "{runs:plural run}; simultaneous {confidence:confidence} intervals over blocks "
            "exclude 1; see the table)."
        ),
        "ratio": "{lowest:number}",
        "ratios": "{lowest:number} to {highest:number}",
        "facts": "Machine facts: {facts}.",
        "confirm": (
            'To confirm the cause, make loop = ["open", "closed"] a factor. Back-to-back calls '
            "have no pause, so this comparison shows whether the pause is the cause. "
            "Alternatively, as root, add the factor cpu_latency_us with the levels 0 and default. "
            "Level 0 disables idle states, so this comparison shows whether they are the cause."
        ),
        "table": "Groups whose latency falls as the rate rises",
        "note": (
            "Each ratio is a geometric mean of ratios between the medians of runs, and has a "
            "simultaneous interval."
        ),
        "one_rate": (
            "The dependence of latency on the rate was not tested, because the study has only "
            "one rate."
        ),
        "few_blocks": (
            "The dependence of latency on the rate was not tested, because the campaign has "
            "{blocks:plural block} and the test needs at least {needed}."
        ),
        "silent": "No decrease of latency with rising rate was detected.",
    },
)


def find(evidence: Evidence, runs: Sequence[Run], noise: Mapping[str, float]) -> Finding | Silence:
    """Return the finding over all groups, or the reason for its absence.

    `noise` is the noise floor of each response.
    """
    falls = falls_of(evidence, runs, noise)
    if falls is None:
        return Silence(PHRASES("one_rate"))
    if falls.falling:
        return _finding(evidence, falls)
    if falls.block_count < BLOCKS_MIN:
        return Silence(PHRASES("few_blocks", blocks=falls.block_count, needed=BLOCKS_MIN))
    return Silence(PHRASES("silent"))


def _finding(evidence: Evidence, falls: Falls) -> Finding:
    factor, falling, groups = falls.factor, falls.falling, falls.groups
    ratios = [math.exp(interval.estimate) for _, interval in falling]
    runs = sum(len(group.logs) * 2 for group, _ in falling)
    slow, fast = (words.level_title(factor, rate, {}) for rate in (falls.rates[0], falls.rates[-1]))
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
    facts = ((f["key"], f["value"]) for host in hosts for f in host.get("facts", []))
    idle_facts = dict.fromkeys(
        f"{k.replace('_', ' ')} {v}" for k, v in facts if "idle" in k or "govern" in k
    )
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


def _detect(searched: Searched) -> list[Finding | Silence]:
    return [find(searched.evidence, searched.runs, noise_of(searched.evidence))]


DETECTOR = Detector(30, _detect)
