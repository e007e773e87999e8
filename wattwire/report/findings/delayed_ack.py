"""Text on waits for acknowledgements, which `analysis/findings/ack_waits.py` detects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.findings import ack_waits
from wattwire.analysis.findings.ack_waits import Contrast, Hit
from wattwire.analysis.findings.runs import Run, by_treatment, settings_with
from wattwire.model import words
from wattwire.model.setting_purposes import NAGLE_OFF, QUICK_ACK
from wattwire.report.findings.finding import (
    Detector,
    Finding,
    Silence,
    level_text,
    levels_text,
    shared_levels,
    study_key,
)
from wattwire.report.parts import Column, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "delayed_ack",
    {
        "title": "Messages wait 40 ms for an acknowledgement",
        "cause": (
            "Nagle's algorithm delays a small segment until the previous segment is acknowledged. "
            "The receiver delays that acknowledgement (on Linux by 40 ms) to combine it with a "
            "reply, but the receiver cannot reply before the second segment arrives. The wait "
            "requires a persistent connection without TCP_NODELAY. It also requires a message that "
            "is written in two or more pieces (such as a header and its body), or a second message "
            "that is sent before the first is acknowledged. At 40 ms, either the request or the "
            "reply waits; at 80 ms, both wait."
        ),
        "summary": (
            "In {hits} of {treatments:plural treatment}, {inside:count} of {messages:count} "
            "messages ({share:percent 3}) from {runs:plural run} cluster at {centres} ms."
        ),
        "centre": "{lowest:number}",
        "centres": "{lowest:number} to {highest:number}",
        "common": "Common to these treatments: {levels}.",
        "excluded": (
            "The answers exclude {excluded:count} of these {runs:plural run} because of the "
            "machine's state, which does not cause this mode."
        ),
        "only_excluded": (
            "In these treatments, only excluded runs show the mode: {treatments:listed}."
        ),
        "only_treatment": "the only treatment",
        "more": "{more} more",
        "settings": "The nodes of these runs reported the setting “{setting}” as {values:listed}.",
        "settings_unknown": (
            "In these runs, no node reported whether Nagle's algorithm was enabled."
        ),
        "contrast": (
            "With {on} instead of {off}, the share of messages in the mode was lower in {fell} of "
            "{pairs:plural pair} of runs that are in the same block and otherwise identical. It "
            "fell from {with_it:percent} to {without_it:percent} (sign test, p = {p:number 2})."
        ),
        "confirm_with_blocks": (
            "To confirm the cause, measure more blocks (plan.blocks). The sign test needs at "
            "least {pairs} pairs of runs of a block in which the mode occurs."
        ),
        "confirm_with_factor": "To confirm the cause, make {keys} a factor of the study.",
        "confirm_otherwise": (
            "To confirm the cause, enable TCP_NODELAY (this middleware's manifest has no "
            "setting for it), or capture packets and look for 40 ms without packets after the "
            "first piece of a message."
        ),
        "table": "Treatments with waiting messages",
        "note": (
            "The mode has two ranges of latency: 36 to 56 ms and 80 to 104 ms. “In the mode”: "
            "messages in either range. “Next to the mode”: messages in one of the two bands next "
            "to the more populated range. Each band is as wide as this range on the log scale, and "
            "the table shows the more populated band."
        ),
        "silent": "No TCP-related latency mode at 40 or 80 ms was detected.",
    },
)


PAIRS_NEEDED = 5
NAMED_MAX = 4


def find(evidence: Evidence, runs: Sequence[Run]) -> Finding | Silence:
    """Return the finding over all treatments, or the reason for its absence."""
    hits = ack_waits.hits_of(evidence, runs)
    if not hits:
        return Silence(PHRASES("silent"))
    contrasts = ack_waits.contrasts(evidence, [run for run in runs if not run.excluded], hits)
    return Finding(
        "delayed-acknowledgements",
        PHRASES("title"),
        any(contrast.proves for contrast in contrasts),
        PHRASES("cause"),
        (
            _summary(evidence, runs, hits),
            *_excluded_sentences(evidence, hits),
            *_nagle_sentences(evidence, runs, hits),
            *(_contrast_sentence(evidence, contrast) for contrast in contrasts),
        ),
        _proof_sentence(evidence, runs, contrasts),
        (_table(evidence, hits),),
    )


def _summary(evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit]) -> Phrase:
    treatments = by_treatment(evidence, runs)
    inside = sum(hit.inside for hit in hits)
    total = sum(hit.mode.total for hit in hits)
    centres = sorted(hit.mode.centre / 1000 for hit in hits)
    lowest, highest = centres[0], centres[-1]
    is_one = words.number(lowest) == words.number(highest)
    summary = PHRASES(
        "summary",
        hits=len(hits),
        treatments=len(treatments),
        inside=inside,
        messages=total,
        share=inside / total,
        runs=sum(hit.mode.runs for hit in hits),
        centres=PHRASES("centre", lowest=lowest)
        if is_one
        else PHRASES("centres", lowest=lowest, highest=highest),
    )
    common = shared_levels(evidence, (hit.treatment for hit in hits), treatments)
    return joined([summary, PHRASES("common", levels=common) if common else ""])


def _excluded_sentences(evidence: Evidence, hits: Sequence[Hit]) -> list[Phrase]:
    """Return sentences on excluded runs with the mode, and on treatments without other runs."""
    counts = {hit.treatment: sum(run.excluded for run in hit.runs) for hit in hits}
    total = sum(counts.values())
    if not total:
        return []
    all_excluded = [
        levels_text(evidence, hit.treatment) or PHRASES("only_treatment")
        for hit in hits
        if counts[hit.treatment] == len(hit.runs)
    ]
    sentence = PHRASES("excluded", excluded=total, runs=sum(len(hit.runs) for hit in hits))
    if not all_excluded:
        return [sentence]
    named, more = all_excluded[:NAMED_MAX], len(all_excluded) - NAMED_MAX
    named += [PHRASES("more", more=more)] if more > 0 else []
    return [joined([sentence, PHRASES("only_excluded", treatments=named)])]


def _nagle_sentences(evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit]) -> list[Phrase]:
    """Return sentences on the Nagle settings of the nodes in runs with the mode."""
    names = settings_with(evidence, runs, NAGLE_OFF)
    mode_runs = [run for hit in hits for run in hit.runs]
    values_by_name = {
        name: sorted({v for run in mode_runs for v in run.in_force(name)}) for name in names
    }
    return [
        PHRASES(
            "settings",
            setting=words.factor_title(name),
            values=[{"yes": "on", "no": "off"}.get(value, value) for value in values],
        )
        for name, values in values_by_name.items()
        if values
    ] or [PHRASES("settings_unknown")]


def _contrast_sentence(evidence: Evidence, contrast: Contrast) -> Phrase:
    on, off = (level_text(evidence, contrast.setting, word) for word in (contrast.on, contrast.off))
    return PHRASES(
        "contrast",
        on=on,
        off=off,
        fell=contrast.fell,
        pairs=contrast.pairs,
        with_it=contrast.with_it,
        without_it=contrast.without_it,
        p=contrast.p,
    )


def _proof_sentence(evidence: Evidence, runs: Sequence[Run], contrasts: Sequence[Contrast]) -> str:
    if any(contrast.proves for contrast in contrasts):
        return ""
    names = [
        f"settings.{name}"
        for purpose in (NAGLE_OFF, QUICK_ACK)
        for name in settings_with(evidence, runs, purpose)
    ]
    fixed_names = [name for name in names if len(evidence.factors.get(name, ())) < 2]
    if names and len(fixed_names) < len(names):
        return PHRASES("confirm_with_blocks", pairs=PAIRS_NEEDED)
    if fixed_names:
        keys = " or ".join(
            study_key(name, _levels_to_compare(evidence, name)) for name in fixed_names
        )
        return PHRASES("confirm_with_factor", keys=keys)
    return PHRASES("confirm_otherwise")


def _levels_to_compare(evidence: Evidence, name: str) -> tuple[Any, Any]:
    """Return the two levels of a setting that a study should compare."""
    switches = (evidence.reader.machine.get("switches") or {}).values()
    is_switch = any(name == f"settings.{setting}" for names in switches for setting in names)
    return ('"default"', '"on"') if is_switch else (False, True)


def _table(evidence: Evidence, hits: Sequence[Hit]) -> Table:
    rows = []
    for hit in hits:
        row: dict[str, Any] = dict(hit.treatment)
        row |= {
            "runs": hit.mode.runs,
            "excluded": sum(run.excluded for run in hit.runs),
            "messages": hit.mode.total,
            "inside": hit.inside,
            "share": 100 * hit.inside / hit.mode.total,
            "beside": hit.mode.neighbours,
            "centre": hit.mode.centre / 1000,
        }
        rows.append(row)
    return Table(
        "finding-delayed-acknowledgements",
        PHRASES("table"),
        [
            *factor_columns(evidence),
            Column("runs", "runs", "measured"),
            Column("excluded", "excluded", "measured"),
            Column("messages", "messages", "measured"),
            Column("inside", "in the mode", "measured"),
            Column("share", "share", "measured", "%"),
            Column("beside", "next to the mode", "measured"),
            Column("centre", "centre of the mode", "measured", "ms"),
        ],
        rows,
        PHRASES("note"),
    )


# Excluded runs are also searched, because load does not cause a mode at 40 ms, and because a
# waiting node leaves CPU time to the other programs, whose load can exclude the run.
DETECTOR = Detector(
    10,
    lambda searched: [find(searched.evidence, [*searched.runs, *searched.excluded])],
    needs_usable_runs=False,
)
