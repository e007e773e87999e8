"""The page's section on the study design: goal, questions, metrics and executed runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, all_levels, window_seconds
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.model.questions import Question
from wattwire.model.validity import conditions_before
from wattwire.model.variants import SAME_THING
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.words import unanswered

HELD = ("cell", "middleware", "language", "pattern", "payload_bytes", "rate_hz", "interval_s",
        "clients")  # fmt: skip
"""Factors shown here where all runs share a level; the audit trail lists the other fixed ones."""


def section(evidence: Evidence) -> Section:
    """Return the section on goal, questions, metrics and executed runs."""
    part = Section("design", "Study design and runs")
    if evidence.part:
        scope = f"This campaign covers a part of the study's design: {evidence.part}."
        part.parts.append(
            Text(f"{scope} The rest was neither built nor run, so the results do not extend to it.")
        )
    goal = evidence.study.goal
    if goal:
        part.parts.append(
            Text(
                f"Analyse {goal.object} to {goal.purpose}: {goal.focus}, "
                f"from the viewpoint of {goal.viewpoint}, {goal.context}."
            )
        )
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
                "Questions and metrics",
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
    unanswered_table = unanswered.table(unanswered.treatments(evidence))
    part.parts += [unanswered_table] if unanswered_table else []
    return part


def _factors(evidence: Evidence, question: Question) -> list[str]:
    """Return the titles of a question's factors; a held factor has its one level added."""
    held = {name: f" (held at {words.plain(level)})" for name, level in evidence.held(question)}
    return [words.factor_title(factor) + held.get(factor, "") for factor in question.factors]


def _metrics(evidence: Evidence, question: Question) -> str:
    """Return the titles of a question's responses and of their correlates, key `beside`."""
    titles, correlates = (
        words.listed([resolve(name, evidence.described).title for name in names])
        for names in (question.responses, question.beside)
    )
    return f"{titles}; correlates: {correlates}" if correlates else titles


def second_line(evidence: Evidence) -> str:
    """Return the line under the first sentence: run counts, omissions and the machine."""
    clauses = [
        f"{words.plural(len(evidence.designed), 'run')} in the design: {_design_counts(evidence)}"
    ]
    controls = evidence.controls_planned
    if controls:
        controls_text = words.plural(len(controls), "control run")
        clauses.append(f"{controls_text}: {_control_counts(evidence)}")
    if evidence.skipped:
        clauses.append(f"{words.plural(len(evidence.skipped), 'treatment')} skipped")
    if evidence.part:
        clauses.append("part of the study's design")
    machine = machine_line(evidence.reader.machine)
    return "; ".join(clauses) + "." + ("" if machine == words.MISSING else f" {machine}.")


def _design_counts(evidence: Evidence) -> str:
    counts = [f"{words.count(evidence.usable.height)} usable"]
    counts.append(f"{words.count(evidence.excluded.height)} excluded")
    untried = evidence.untried(evidence.designed)
    return ", ".join(counts + ([f"{words.count(untried)} not tried yet"] if untried else []))


def _control_counts(evidence: Evidence) -> str:
    untried = evidence.untried(evidence.controls_planned)
    unusable = len(evidence.controls_planned) - untried - evidence.controls.height
    counts = [
        f"{words.count(evidence.controls.height)} usable",
        f"{words.count(unusable)} unusable",
    ]
    return ", ".join(counts + ([f"{words.count(untried)} not tried yet"] if untried else []))


def _run_table(evidence: Evidence) -> Table:
    planned = evidence.planned
    treatments = {json.dumps(all_levels(entry), sort_keys=True) for entry in planned}
    blocks = {entry.get("block") for entry in planned}
    windows_s = window_seconds(evidence, evidence.usable)
    known_s = windows_s[np.isfinite(windows_s)]
    facts: list[tuple[str, str]] = [
        (words.factor_title(name), ", ".join(_level(evidence, name, level) for level in levels))
        for name, levels in evidence.factors.items()
    ]
    controls = words.count(len(evidence.controls_planned))
    left_out = words.count(len(evidence.skipped))
    facts += [
        *_shared_levels(evidence),
        ("treatments", words.count(len(treatments))),
        ("blocks", words.count(len(blocks))),
        (
            "measured runs of the design",
            f"{words.count(len(evidence.designed))}: {_design_counts(evidence)}",
        ),
        (
            "control runs",
            f"{controls}: {_control_counts(evidence)}" if controls != "0" else "none",
        ),
        (
            "treatments skipped",
            left_out + (" (reasons: audit trail)" if evidence.skipped else ""),
        ),
        ("window of a run", words.duration(float(np.median(known_s))) if known_s.size else "–"),
        *_time_taken(evidence),
        ("machine", machine_line(evidence.reader.machine)),
    ]
    if evidence.part:
        facts.insert(0, ("part of the design", evidence.part))
    return Table(
        "what-was-run",
        "Runs and machine",
        [Column("what", ""), Column("value", "")],
        [{"what": label, "value": value} for label, value in facts],
    )


def _level(evidence: Evidence, factor: str, level: Any) -> str:
    """Return a level with its unit or title, if any; a bare count has its noun in the heading."""
    titled = factor in words.FACTOR_UNITS or words.plain(level) in evidence.titles.get(factor, {})
    return evidence.title(factor, level) if titled else words.plain(level)


def _shared_levels(evidence: Evidence) -> list[tuple[str, str]]:
    """Return label and text of the levels of HELD that all runs share, then each variant's own."""
    fixed = evidence.study.fixed
    variant_levels = {name: variant.levels for name, variant in evidence.study.variants.items()}
    changed = {key for levels in variant_levels.values() for key in levels}
    changed |= {name for pair in SAME_THING if pair & changed for name in pair}
    titles = [
        evidence.title(name, fixed[name])
        for name in HELD
        if fixed.get(name) not in (None, "") and name not in evidence.factors
        if name not in changed
    ]
    facts = [("in all runs", ", ".join(titles))] if titles else []
    for name, levels in variant_levels.items() if changed else ():
        all_settings = {**{key: fixed[key] for key in changed if key in fixed}, **levels}
        text = words.listed(
            [f"{key} = {words.plain(level)}" for key, level in all_settings.items()]
        )
        facts.append((f"in {name}", text or "as in the study"))
    return facts


def _time_taken(evidence: Evidence) -> list[tuple[str, str]]:
    """Return labels and texts of measured, waited and wall-clock time over all attempts."""
    measured_s, waited_s, begins_ns, ends_ns = 0.0, 0.0, [], []
    for attempt in evidence.attempts.select("run", "attempt").iter_rows(named=True):
        document = evidence.document(attempt["run"], attempt["attempt"])
        phases = (document.get("seconds") or {}).values()
        measured_s += sum(float(s) for s in phases if isinstance(s, (int, float)))
        attempt_waited_s = float(conditions_before(document).get("waited_s") or 0.0)
        waited_s += attempt_waited_s
        clocks = document.get("clocks") or {}
        if clocks.get("begin") and clocks.get("end"):
            begins_ns.append(clocks["begin"][0]["realtime_ns"] - int(attempt_waited_s * 1e9))
            ends_ns.append(clocks["end"][-1]["realtime_ns"])
    if not measured_s:
        return []
    wall_s = (max(ends_ns) - min(begins_ns)) / 1e9 if ends_ns else None
    return [
        ("measured time, sum of all attempts", words.duration(measured_s)),
        ("additional waiting for a quiet machine", words.duration(waited_s)),
        ("wall-clock time from the first run to the last, with waiting and pauses",
         words.duration(wall_s)),
    ]  # fmt: skip


def machine_line(machine: Mapping[str, Any]) -> str:
    """Return one line on the hosts: processor, cores, memory, kernel."""
    lines = []
    for host in machine.get("hosts", {}).values():
        facts = {str(fact["key"]): fact.get("value") for fact in host.get("facts", [])}
        items = [str(facts["cpu_name"])] if facts.get("cpu_name") else []
        cpus = next((facts[key] for key in ("cpus", "cores") if facts.get(key)), None)
        items += [f"{cpus} CPUs"] if cpus else []
        memory = next(
            (facts[key] for key in facts if key.startswith("memory") and facts[key]), None
        )
        if isinstance(memory, (int, float)):
            items.append(f"{words.number(memory / 2**30)} GiB")
        kernel = next((facts[key] for key in facts if key.startswith("kernel")), None)
        items += [f"kernel {kernel}"] if kernel else []
        lines.append(", ".join(items))
    return "; ".join(line for line in lines if line) or words.MISSING
