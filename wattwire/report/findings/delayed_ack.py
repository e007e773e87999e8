"""Latency modes at 40 ms or twice that: Nagle's algorithm and delayed acknowledgements.

What: treatments with a mode of latency at 36 to 56 ms or 80 to 104 ms (one wait or two, each
rounded up to the kernel's timer tick, and the call itself, which in some libraries takes 5 ms).
How: `stats.mode_between` on each treatment's latencies; where settings of the right purposes vary,
the share of messages in the mode is compared between neighbouring runs of a block.
What it misses: a mode of less than 1 % of the messages. It reports nothing if nodes report
another transport, or that the delay is switched off. A handler that takes 40 ms by itself has
the same mode: without a contrast the cause remains a suspicion.
Reference: RFC 896; RFC 9293 §3.7.4 and §3.8.6.3; Linux include/net/tcp.h, TCP_DELACK_MIN.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.model.setting_purposes import NAGLE_OFF, QUICK_ACK, SWITCH, WRITES_PER_MESSAGE
from wattwire.report.findings.finding import (
    Finding,
    Run,
    Silence,
    Treatment,
    by_treatment,
    settings_with,
    shared_levels,
    study_key,
    told_level,
    told_levels,
)
from wattwire.report.parts import Column, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "delayed_ack",
    {
        "title": "Messages wait 40 ms for an acknowledgement",
        "cause": (
            "Nagle's algorithm holds back a small segment until the previous one is acknowledged. "
            "The receiver delays that acknowledgement (on Linux by 40 ms) to send it together with "
            "its reply, and it cannot reply before the second segment arrives. Three conditions "
            "are needed: a message written in two or more pieces, such as a header and its body, "
            "or a second message before the first is acknowledged; a persistent connection; a "
            "socket without TCP_NODELAY. At 40 ms the request or the reply waits; at 80 ms both "
            "wait."
        ),
        "summary": (
            "{hits} of {treatments:plural treatment}: {inside:count} of {messages:count} messages "
            "({share:percent 3}) in {runs:plural run} cluster at {centres} ms."
        ),
        "centre": "{lowest:number}",
        "centres": "{lowest:number} to {highest:number}",
        "common": "Common to these treatments: {levels}.",
        "excluded": (
            "{excluded:count} of these {runs:plural run} are excluded from the answers because of "
            "the machine's state, which does not cause this mode."
        ),
        "only_excluded": "Without any other run: {treatments:listed}.",
        "only_treatment": "the only treatment",
        "more": "{more} more",
        "settings": "Settings in these runs, as reported by the nodes: {setting} {values:listed}.",
        "settings_unknown": ("No node reported whether Nagle's algorithm was on in these runs."),
        "contrast": (
            "{on:capital} against {off}, otherwise the same and in the same block: the share in "
            "the mode fell in {fell} of {pairs:plural pair} of runs, from {with_it:percent} to "
            "{without_it:percent} (sign test, p = {p:number 2})."
        ),
        "confirm_with_blocks": (
            "To confirm: more blocks (plan.blocks); a sign test needs the mode in {pairs} or more "
            "pairs of neighbouring runs."
        ),
        "confirm_with_factor": "To confirm: {keys} as a factor of the study.",
        "confirm_otherwise": (
            "To confirm: a setting of this middleware that switches TCP_NODELAY on (its manifest "
            "names none), or a packet capture that shows the first piece of a message followed by "
            "40 ms without packets."
        ),
        "table": "Treatments with waiting messages",
        "note": (
            "In the mode: at 36 to 56 ms or at 80 to 104 ms. “Next to the mode”: messages in the "
            "fuller of the two bands that are next to the fuller one and as wide on the log scale."
        ),
        "silent": "No latency mode at 40 or 80 ms that TCP could cause.",
    },
)

BANDS_US = ((36_000.0, 56_000.0), (80_000.0, 104_000.0))
FAST_US = 20_000.0
P_MAX = 0.05
LEFT_OVER_MAX = 0.1
PAIRS_NEEDED = 5
NAMED_MAX = 4
ACKNOWLEDGED = re.compile(r"\b(mp)?tcp|websocket|\bwss?\b|\bhttp", re.IGNORECASE)


@dataclass(frozen=True)
class Hit:
    """A treatment with a mode in one of the bands; `inside` counts both bands."""

    treatment: Treatment
    runs: tuple[Run, ...]
    mode: stats.Mode
    inside: int


@dataclass(frozen=True)
class Contrast:
    """Contrast of two levels of a setting: share of messages in the mode, by pairs of runs."""

    setting: str
    purpose: str
    on: str
    off: str
    with_it: float
    without_it: float
    fell: int
    pairs: int

    @property
    def p(self) -> float:
        """p of the sign test: probability of at least as many falling pairs by chance."""
        return stats.sign_p(self.fell, self.pairs)

    @property
    def proves(self) -> bool:
        """Whether the mode nearly disappears with the setting: at most LEFT_OVER_MAX remains."""
        is_gone = self.without_it <= LEFT_OVER_MAX * self.with_it
        return self.purpose != WRITES_PER_MESSAGE and is_gone and self.p <= P_MAX

    def sentence(self, evidence: Evidence) -> Phrase:
        """Return a sentence on the contrast."""
        on, off = (told_level(evidence, self.setting, word) for word in (self.on, self.off))
        return PHRASES(
            "contrast",
            on=on,
            off=off,
            fell=self.fell,
            pairs=self.pairs,
            with_it=self.with_it,
            without_it=self.without_it,
            p=self.p,
        )


def in_mode(run: Run) -> float:
    """Return the share of a run's messages in either band."""
    inside = [(run.values_us >= low) & (run.values_us < high) for low, high in BANDS_US]
    return float(np.mean(inside[0] | inside[1]))


def hits_of(evidence: Evidence, runs: Sequence[Run]) -> list[Hit]:
    """Return treatments with a mode that acknowledgements may cause, each with the fuller band."""
    off_levels = [(name, "yes") for purpose in (NAGLE_OFF, QUICK_ACK)
           for name in settings_with(evidence, runs, purpose)]  # fmt: skip
    some_fast = any(run.p50_us < FAST_US for run in runs)
    hits = []
    for treatment, members in by_treatment(evidence, runs).items():
        possible = [run for run in members if _may_wait(run, off_levels, some_fast)]
        series = [run.values_us for run in possible]
        modes = [stats.mode_between(series, low, high) for low, high in BANDS_US]
        present = [mode for mode in modes if mode is not None]
        if present:
            fullest = max(present, key=lambda mode: mode.inside)
            inside = round(sum(in_mode(run) * run.values_us.size for run in possible))
            hits.append(Hit(treatment, tuple(possible), fullest, inside))
    return hits


def _may_wait(run: Run, off_levels: Sequence[tuple[str, str]], some_fast: bool) -> bool:
    """Return whether this run's messages may have waited for acknowledgements."""
    if any(run.in_force(name) == {word} for name, word in off_levels):
        return False
    if run.transports and not any(ACKNOWLEDGED.search(word) for word in run.transports):
        return False
    # Between hosts, 40 ms may be the network's latency, unless another run is faster.
    return some_fast or len(run.hosts) < 2


def find(evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit]) -> Finding | Silence:
    """Return the finding over all treatments together, or the reason for none."""
    if not hits:
        return Silence(PHRASES("silent"))
    contrasts = _contrasts(evidence, [run for run in runs if not run.excluded], hits)
    return Finding(
        "delayed-acknowledgements",
        PHRASES("title"),
        any(contrast.proves for contrast in contrasts),
        PHRASES("cause"),
        (
            _summary(evidence, runs, hits),
            *_excluded_sentences(evidence, hits),
            *_nagle_sentences(evidence, runs, hits),
            *(contrast.sentence(evidence) for contrast in contrasts),
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
    """Return sentences on excluded runs with the mode, and on treatments with no other run."""
    counts = {hit.treatment: sum(run.excluded for run in hit.runs) for hit in hits}
    total = sum(counts.values())
    if not total:
        return []
    all_excluded = [
        told_levels(evidence, hit.treatment) or PHRASES("only_treatment")
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
    """Return sentences on Nagle's algorithm as reported by the nodes of runs with the mode."""
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


def _contrasts(evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit]) -> list[Contrast]:
    contrasts = []
    for purpose in (NAGLE_OFF, QUICK_ACK, WRITES_PER_MESSAGE):
        for setting in settings_with(evidence, runs, purpose):
            name = f"settings.{setting}"
            levels = sorted(evidence.factors.get(name, ()))
            if len(levels) < 2:
                continue
            without, with_it = _contrasted_levels(purpose, levels)
            contrast = _contrast(evidence, runs, hits, (name, purpose, without, with_it))
            if contrast is not None:
                contrasts.append(contrast)
    return contrasts


def _contrasted_levels(purpose: str, levels: Sequence[Any]) -> tuple[str, str]:
    """Return the level expected to be without the mode, and the level expected to have it."""
    if set(levels) <= set(SWITCH):
        return "on", next(level for level in SWITCH if level in levels and level != "on")
    extremes = words.plain(levels[0]), words.plain(levels[-1])
    return extremes if purpose == WRITES_PER_MESSAGE else extremes[::-1]


def _contrast(
    evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit], setting: tuple[str, str, str, str]
) -> Contrast | None:
    name, purpose, without, with_it = setting
    hit_treatments = {hit.treatment for hit in hits}
    runs_by_level: dict[tuple[int, Treatment], dict[str, Run]] = {}
    for run in runs:
        level = words.plain(run.levels.get(name))
        runs_by_level.setdefault((run.block, run.treatment(evidence.varied, (name,))), {})[
            level
        ] = run
    pairs = [
        (in_mode(by_level[with_it]), in_mode(by_level[without]))
        for by_level in runs_by_level.values()
        if with_it in by_level
        and without in by_level
        and by_level[with_it].treatment(evidence.varied) in hit_treatments
    ]
    if not pairs:
        return None
    high, low = (float(np.mean([pair[side] for pair in pairs])) for side in (0, 1))
    fell = sum(with_share > without_share for with_share, without_share in pairs)
    return Contrast(name, purpose, without, with_it, high, low, fell, len(pairs))


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
    """Return the two levels of a setting to compare in a study, as the manifest defines them."""
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
