"""Text on waits for the ticks of a loop, which `analysis/findings/tick_waits.py` detects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.findings import tick_waits
from wattwire.analysis.findings.runs import Run, by_treatment, settings_with
from wattwire.analysis.findings.tick_waits import Contrast, Hit
from wattwire.model.setting_purposes import REPLY_WAIT
from wattwire.report.findings.finding import (
    Detector,
    Finding,
    Silence,
    level_text,
    shared_levels,
)
from wattwire.report.parts import Column, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats.series.ticks import WIDTH

PHRASES = Phrases(
    "ticks",
    {
        "title": "Messages wait in ticks of {periods:listed} ms",
        "period": "{period:.4g}",
        "cause": (
            "The receiver looks for the message, sleeps for a fixed period, and looks again. "
            "A message that arrives during the sleep waits for the next look. The latency is "
            "therefore the next multiple of the period, whatever the size of the message and the "
            "speed of the transport."
        ),
        "summary": (
            "In {hits} of {treatments:plural treatment}, {inside:count} of {messages:count} "
            "messages ({share:percent 3}) from {runs:plural run} take slightly longer than a "
            "multiple of {periods:listed} ms; {first:percent 3} of these messages take one period."
        ),
        "common": "Common to these treatments: {levels}.",
        "contrast": (
            "With {other} instead of {waiting}, the share of messages that take a period or "
            "longer was lower in {fell} of {pairs:plural pair} of runs that are in the same block "
            "and otherwise identical. It fell from {with_it:percent} to {without_it:percent} "
            "(sign test, p = {p:number 2})."
        ),
        "confirm_with_blocks": (
            "To confirm the cause, measure more blocks (plan.blocks). The sign test needs at "
            "least {pairs} pairs of runs of a block in which the ticks occur."
        ),
        "confirm_with_factor": (
            "To confirm the cause, make {names:listed} a factor of the study, with a level that "
            "waits without sleeping."
        ),
        "confirm_otherwise": (
            "To confirm the cause, look in the receiver for a loop that sleeps, or count its "
            "system calls: such a loop sleeps at least once per message."
        ),
        "table": "Treatments with latencies at multiples of a period",
        "note": (
            "A message is at a tick if it takes a multiple of the period, and at most "
            "{width:percent} of the period longer."
        ),
        "silent": "No latencies at multiples of one period were detected.",
    },
)
PAIRS_NEEDED = 5


def find(evidence: Evidence, runs: Sequence[Run]) -> Finding | Silence:
    """Return the finding over all treatments, or the reason for its absence."""
    hits = tick_waits.hits_of(evidence, runs)
    if not hits:
        return Silence(PHRASES("silent"))
    contrasts = tick_waits.contrasts(evidence, runs, hits)
    return Finding(
        "waits-in-ticks",
        PHRASES("title", periods=_periods(hits)),
        any(contrast.proves for contrast in contrasts),
        PHRASES("cause"),
        (
            _summary(evidence, runs, hits),
            *(_contrast_sentence(evidence, contrast) for contrast in contrasts),
        ),
        _proof_sentence(evidence, runs, contrasts),
        (_table(evidence, hits),),
    )


def _periods(hits: Sequence[Hit]) -> list[Phrase]:
    """Return the different periods in ms."""
    periods = sorted({hit.ticks.period / 1000 for hit in hits})
    return [PHRASES("period", period=period) for period in periods]


def _summary(evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit]) -> Phrase:
    treatments = by_treatment(evidence, runs)
    inside = sum(hit.ticks.inside for hit in hits)
    messages = sum(hit.ticks.total for hit in hits)
    summary = PHRASES(
        "summary",
        hits=len(hits),
        treatments=len(treatments),
        inside=inside,
        messages=messages,
        share=inside / messages,
        runs=sum(hit.ticks.runs for hit in hits),
        periods=_periods(hits),
        first=sum(dict(hit.ticks.counts).get(1, 0) for hit in hits) / inside,
    )
    common = shared_levels(evidence, (hit.treatment for hit in hits), treatments)
    return joined([summary, PHRASES("common", levels=common) if common else ""])


def _contrast_sentence(evidence: Evidence, contrast: Contrast) -> Phrase:
    return PHRASES(
        "contrast",
        other=level_text(evidence, contrast.setting, contrast.other),
        waiting=level_text(evidence, contrast.setting, contrast.waiting),
        fell=contrast.fell,
        pairs=contrast.pairs,
        with_it=contrast.with_it,
        without_it=contrast.without_it,
        p=contrast.p,
    )


def _proof_sentence(evidence: Evidence, runs: Sequence[Run], contrasts: Sequence[Contrast]) -> str:
    if any(contrast.proves for contrast in contrasts):
        return ""
    if contrasts:
        return PHRASES("confirm_with_blocks", pairs=PAIRS_NEEDED)
    names = [f"settings.{name}" for name in settings_with(evidence, runs, REPLY_WAIT)]
    if names:
        return PHRASES("confirm_with_factor", names=names)
    return PHRASES("confirm_otherwise")


def _table(evidence: Evidence, hits: Sequence[Hit]) -> Table:
    rows = []
    for hit in hits:
        ticks = hit.ticks
        row: dict[str, Any] = dict(hit.treatment)
        row |= {
            "runs": ticks.runs,
            "messages": ticks.total,
            "inside": ticks.inside,
            "share": 100 * ticks.inside / ticks.total,
            "period": ticks.period / 1000,
            "multiples": ", ".join(f"{multiple} ({count})" for multiple, count in ticks.counts),
        }
        rows.append(row)
    return Table(
        "finding-waits-in-ticks",
        PHRASES("table"),
        [
            *factor_columns(evidence),
            Column("runs", "runs", "measured"),
            Column("messages", "messages", "measured"),
            Column("inside", "at a tick", "measured"),
            Column("share", "share", "measured", "%"),
            Column("period", "period", "measured", "ms"),
            Column("multiples", "multiples (messages)", "measured"),
        ],
        rows,
        PHRASES("note", width=WIDTH),
    )


DETECTOR = Detector(15, lambda searched: [find(searched.evidence, searched.runs)])
