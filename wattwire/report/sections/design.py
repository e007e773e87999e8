"""Build the section on the study design: goal, questions, metrics and executed runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, all_levels, held_levels, window_seconds
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.model.questions import Question
from wattwire.model.variants import FACTOR, SAME_THING
from wattwire.report.page_parts import HeadLine, PagePart
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.topic_page import Placed
from wattwire.report.words.design_part import requested_part
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "design",
    {
        # The line below the first sentence of the page.
        "runs": "{runs:plural run} in the design: {counts}",
        "controls": "{runs:plural control run}: {counts}",
        "counts": "{usable:count} valid, {excluded:count} excluded",
        "counts_untried": "{counts}, {untried:count} not tried yet",
        "control_counts": "{usable:count} valid, {unusable:count} not valid",
        "skipped": "{treatments:plural treatment} skipped",
        "part": "part of the study's design",
        "line": "{clauses}.",
        "machine": "{machine}.",
        "processor_count": "{cpus} CPUs",
        "memory": "{memory_gib:number} GiB",
        "kernel": "kernel {kernel}",
        # The section.
        "title": "Study design and runs",
        "scope": (
            "This campaign covers a part of the study's design: {part}. The other treatments "
            "were not run, and the results do not extend to them."
        ),
        "goal": (
            "Analyse {object} to {purpose}: {focus}, from the viewpoint of {viewpoint}, {context}."
        ),
        "questions": "Questions and metrics",
        "held_factor": "{factor} (held at {level})",
        "correlates": "{responses}; correlates: {correlates}",
        # The table of runs and machine.
        "table": "Runs and machine",
        "treatments": "treatments",
        "blocks": "blocks",
        "measured_runs": "measured runs of the design",
        "run_counts": "{runs:count}: {counts}",
        "control_runs": "control runs",
        "no_control_run": "none",
        "skipped_label": "treatments skipped",
        "skipped_count": "{treatments:count} (reasons: audit trail)",
        "none_skipped": "0",
        "window": "window length of a run",
        "machine_label": "machine",
        "part_label": "part of the design",
        "in_all_runs": "in all runs",
        "in_variant": "in {variant}",
        "variant_unchanged": "as in the study",
        "measured_time": "measured time, sum of all attempts",
        "waiting_time": "additional time spent waiting for a quiet machine",
        "wall_clock_time": ("wall-clock time from first to last run, including waiting and pauses"),
        "time": "{time:duration}",
    },
)

HELD = ("cell", "middleware", "language", "pattern", "payload_bytes", "rate_hz", "interval_s",
        "clients")  # fmt: skip
"""Factors that the section lists if all runs share a level. The audit trail lists the others."""


def section(evidence: Evidence, joining: Sequence[Placed] = ()) -> Section:
    """Return the section on goal, questions, metrics and executed runs.

    The parts of topics that join the section are at its end.
    """
    part = Section("design", PHRASES("title"))
    if requested := requested_part(evidence):
        part.parts.append(Text(PHRASES("scope", part=requested)))
    goal = evidence.study.goal
    if goal:
        text = PHRASES(
            "goal",
            object=goal.object,
            purpose=goal.purpose,
            focus=goal.focus,
            viewpoint=goal.viewpoint,
            context=goal.context,
        )
        part.parts.append(Text(text))
    questions = [
        {
            "id": question.id,
            "text": question.text,
            "factors": words.listed(_factors(evidence, question)),
            "responses": _metrics(evidence, question),
        }
        for question in evidence.study.questions
    ]
    if questions:
        part.parts.append(
            Table(
                "questions",
                PHRASES("questions"),
                [
                    Column("id", ""),
                    Column("text", "question"),
                    Column("factors", "factors"),
                    Column("responses", "metrics"),
                ],
                questions,
            )
        )
    part.parts.append(_run_table(evidence))
    part.parts += [joining_part for _, joining_part in joining]
    return part


def _factors(evidence: Evidence, question: Question) -> list[str]:
    """Return the titles of a question's factors. The title of a fixed factor includes its level."""
    held = dict(evidence.held(question))
    titles = []
    for factor in question.factors:
        title = words.factor_title(factor)
        if factor in held:
            level = words.plain(held[factor])
            title = PHRASES("held_factor", factor=title, level=level)
        titles.append(title)
    return titles


def _metrics(evidence: Evidence, question: Question) -> str:
    """Return the titles of a question's responses and of their correlates (`beside`)."""
    titles, correlates = (
        words.listed([resolve(name, evidence.described).title for name in names])
        for names in (question.responses, question.beside)
    )
    if not correlates:
        return titles
    return PHRASES("correlates", responses=titles, correlates=correlates)


def second_line(evidence: Evidence) -> Phrase:
    """Return the line below the first sentence, with numbers of runs, omissions and the machine."""
    clauses = [PHRASES("runs", runs=len(evidence.designed), counts=_design_counts(evidence))]
    controls = evidence.controls_planned
    if controls:
        clauses.append(PHRASES("controls", runs=len(controls), counts=_control_counts(evidence)))
    if evidence.skipped:
        clauses.append(PHRASES("skipped", treatments=len(evidence.skipped)))
    if evidence.study.part:
        clauses.append(PHRASES("part"))
    machine = machine_line(evidence.reader.machine)
    texts = [PHRASES("line", clauses=joined(clauses, "; "))]
    texts += [] if machine == words.MISSING else [PHRASES("machine", machine=machine)]
    return joined(texts)


def _design_counts(evidence: Evidence) -> Phrase:
    counts = PHRASES("counts", usable=evidence.usable.height, excluded=evidence.excluded.height)
    return _with_untried(counts, evidence.untried(evidence.designed))


def _control_counts(evidence: Evidence) -> Phrase:
    untried = evidence.untried(evidence.controls_planned)
    unusable = len(evidence.controls_planned) - untried - evidence.controls.height
    counts = PHRASES("control_counts", usable=evidence.controls.height, unusable=unusable)
    return _with_untried(counts, untried)


def _with_untried(counts: Phrase, untried: int) -> Phrase:
    return PHRASES("counts_untried", counts=counts, untried=untried) if untried else counts


def _run_table(evidence: Evidence) -> Table:
    planned = evidence.planned
    treatments = {repr(sorted(all_levels(entry).items())) for entry in planned}
    blocks = {entry.get("block") for entry in planned}
    windows_s = window_seconds(evidence, evidence.usable)
    known_s = windows_s[np.isfinite(windows_s)]
    facts: list[tuple[str, str]] = [
        (words.factor_title(name), ", ".join(_level(evidence, name, level) for level in levels))
        for name, levels in evidence.factors.items()
    ]
    controls, skipped = len(evidence.controls_planned), len(evidence.skipped)
    designed = len(evidence.designed)
    facts += [
        *_shared_levels(evidence),
        (PHRASES("treatments"), words.count(len(treatments))),
        (PHRASES("blocks"), words.count(len(blocks))),
        (
            PHRASES("measured_runs"),
            PHRASES("run_counts", runs=designed, counts=_design_counts(evidence)),
        ),
        (
            PHRASES("control_runs"),
            PHRASES("run_counts", runs=controls, counts=_control_counts(evidence))
            if controls
            else PHRASES("no_control_run"),
        ),
        (
            PHRASES("skipped_label"),
            PHRASES("skipped_count", treatments=skipped) if skipped else PHRASES("none_skipped"),
        ),
        (
            PHRASES("window"),
            PHRASES("time", time=float(np.median(known_s))) if known_s.size else words.MISSING,
        ),
        *_time_taken(evidence),
        (PHRASES("machine_label"), machine_line(evidence.reader.machine)),
    ]
    if requested := requested_part(evidence):
        facts.insert(0, (PHRASES("part_label"), requested))
    return Table(
        "what-was-run",
        PHRASES("table"),
        [Column("what", ""), Column("value", "")],
        [{"what": label, "value": value} for label, value in facts],
    )


def _level(evidence: Evidence, factor: str, level: Any) -> str:
    """Return a level with its unit or title. A count has no noun, because the heading has it."""
    titled = factor in words.FACTOR_UNITS or words.plain(level) in evidence.titles.get(factor, {})
    return evidence.title(factor, level) if titled else words.plain(level)


def _shared_levels(evidence: Evidence) -> list[tuple[str, str]]:
    """Return (label, text) of the shared HELD levels, and of each planned variant's levels."""
    fixed = evidence.study.fixed
    held = held_levels(evidence)
    planned = {str(level) for level in evidence.factors.get(FACTOR, ())}
    variant_levels = {
        name: variant.levels for name, variant in evidence.study.variants.items() if name in planned
    }
    changed = {key for levels in variant_levels.values() for key in levels}
    changed |= {name for pair in SAME_THING if pair & changed for name in pair}
    titles = [
        evidence.title(name, held[name])
        for name in HELD
        if held.get(name) not in (None, "") and name not in changed
    ]
    facts: list[tuple[str, str]] = [(PHRASES("in_all_runs"), ", ".join(titles))] if titles else []
    for name, levels in variant_levels.items() if changed else ():
        all_settings = {**{key: fixed[key] for key in changed if key in fixed}, **levels}
        text = words.listed(
            [f"{key} = {words.plain(level)}" for key, level in all_settings.items()]
        )
        label = PHRASES("in_variant", variant=name)
        facts.append((label, text or PHRASES("variant_unchanged")))
    return facts


def _time_taken(evidence: Evidence) -> list[tuple[str, str]]:
    """Return (label, text) of the measuring, waiting and wall-clock time of all attempts.

    The result is empty if the attempts have no durations.
    """
    measured_s, waited_s, begins_ns, ends_ns = 0.0, 0.0, [], []
    for attempt in evidence.attempts.select("run", "attempt").iter_rows(named=True):
        document = evidence.document(attempt["run"], attempt["attempt"])
        phases = (document.get("seconds") or {}).values()
        measured_s += sum(float(s) for s in phases if isinstance(s, (int, float)))
        before = document.get("conditions_before") or {}
        attempt_waited_s = float(before.get("waited_s") or 0.0)
        waited_s += attempt_waited_s
        clocks = document.get("clocks") or {}
        if clocks.get("begin") and clocks.get("end"):
            begins_ns.append(clocks["begin"][0]["realtime_ns"] - int(attempt_waited_s * 1e9))
            ends_ns.append(clocks["end"][-1]["realtime_ns"])
    if not measured_s:
        return []
    wall_s = (max(ends_ns) - min(begins_ns)) / 1e9 if ends_ns else None
    return [
        (PHRASES("measured_time"), PHRASES("time", time=measured_s)),
        (PHRASES("waiting_time"), PHRASES("time", time=waited_s)),
        (PHRASES("wall_clock_time"), PHRASES("time", time=wall_s)),
    ]


def machine_line(machine: Mapping[str, Any]) -> str:
    """Return a line on the processor, cores, memory and kernel of each machine."""
    lines = []
    for host in machine.get("hosts", {}).values():
        facts = {str(fact["key"]): fact.get("value") for fact in host.get("facts", [])}
        items = [str(facts["cpu_name"])] if facts.get("cpu_name") else []
        cpus = facts.get("cpus")
        items += [PHRASES("processor_count", cpus=cpus)] if cpus else []
        memory = next(
            (facts[key] for key in facts if key.startswith("memory") and facts[key]), None
        )
        if isinstance(memory, (int, float)):
            items.append(PHRASES("memory", memory_gib=memory / 2**30))
        kernel = next((facts[key] for key in facts if key.startswith("kernel")), None)
        items += [PHRASES("kernel", kernel=kernel)] if kernel else []
        lines.append(", ".join(items))
    return "; ".join(dict.fromkeys(line for line in lines if line)) or words.MISSING


PART = PagePart(
    50,
    lambda data: [section(data.evidence, data.joining("design"))],
    lambda data: [HeadLine(40, second_line(data.evidence), page_only=True)],
)
