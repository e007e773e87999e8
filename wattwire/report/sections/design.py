"""What was asked and what was run, before any answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, all_levels, window_seconds
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.model.validity import conditions_before
from wattwire.model.variants import SAME_THING
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.words import unanswered

HELD = ("cell", "middleware", "language", "pattern", "payload_bytes", "rate_hz", "interval_s",
        "clients")  # fmt: skip
"""What a reader asks first of runs that share it; the other fixed levels stand in the audit."""


def section(evidence: Evidence) -> Section:
    """The page's first part: goal, questions, metrics, and what was executed."""
    part = Section("design", "What was asked, what was run")
    if evidence.part:
        told = f"Only a part of this study's design was asked for: {evidence.part}."
        part.parts.append(
            Text(f"{told} What is beyond it was neither built nor run: nothing here speaks for it.")
        )
    goal = evidence.study.get("goal") or {}
    if goal:
        part.parts.append(
            Text(
                f"Analyse {goal.get('object', '')} to {goal.get('purpose', '')}: "
                f"{goal.get('focus', '')}, as {goal.get('viewpoint', '')} would see it, "
                f"{goal.get('context', '')}."
            )
        )
    questions = [
        {
            "id": str(q.get("id", "")),
            "text": str(q.get("text", "")),
            "factors": words.listed(_factors(evidence, q)),
            "responses": _metrics(evidence, q),
        }
        for q in evidence.study.get("question", [])
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
    without = unanswered.table(unanswered.treatments(evidence))
    part.parts += [without] if without else []
    return part


def _factors(evidence: Evidence, question: Mapping[str, Any]) -> list[str]:
    """A question's factors by their titles, those that are held with their one level."""
    held = {name: f" (held at {words.plain(level)})" for name, level in evidence.held(question)}
    return [words.factor_title(f) + held.get(f, "") for f in question.get("factors", [])]


def _metrics(evidence: Evidence, question: Mapping[str, Any]) -> str:
    """A question's responses, and what they are set beside."""
    told, beside = (
        words.listed([resolve(name, evidence.described).title for name in question.get(key, [])])
        for key in ("responses", "beside")
    )
    return f"{told}, beside {beside}" if beside else told


def second_line(evidence: Evidence) -> str:
    """The line under the first sentence: how much stands behind it, and on which machine."""
    told = [f"{words.plural(len(evidence.designed), 'run')} in the design: {_of_design(evidence)}"]
    controls = evidence.controls_planned
    if controls:
        runs = words.plural(len(controls), "control run")
        told.append(f"{runs} beside them, {_of_controls(evidence)}")
    if evidence.skipped:
        told.append(f"{words.plural(len(evidence.skipped), 'treatment')} left out")
    if evidence.part:
        told.append("a part of the study's design")
    machine = machine_line(evidence.reader.machine)
    return "; ".join(told) + "." + ("" if machine == words.MISSING else f" {machine}.")


def _of_design(evidence: Evidence) -> str:
    told = [f"{words.count(evidence.usable.height)} usable"]
    told.append(f"{words.count(evidence.set_aside.height)} unusable (set aside)")
    untried = evidence.untried(evidence.designed)
    return ", ".join(told + ([f"{words.count(untried)} not tried yet"] if untried else []))


def _of_controls(evidence: Evidence) -> str:
    untried = evidence.untried(evidence.controls_planned)
    unusable = len(evidence.controls_planned) - untried - evidence.controls.height
    told = [f"{words.count(evidence.controls.height)} usable", f"{words.count(unusable)} unusable"]
    return ", ".join(told + ([f"{words.count(untried)} not tried yet"] if untried else []))


def _run_table(evidence: Evidence) -> Table:
    planned = evidence.planned
    treatments = {json.dumps(all_levels(e), sort_keys=True) for e in planned}
    blocks = {e.get("block") for e in planned}
    windows = window_seconds(evidence, evidence.usable)
    known = windows[np.isfinite(windows)]
    facts: list[tuple[str, str]] = [
        (words.factor_title(name), ", ".join(_level(evidence, name, v) for v in levels))
        for name, levels in evidence.factors.items()
    ]
    controls = words.count(len(evidence.controls_planned))
    left_out = words.count(len(evidence.skipped))
    facts += [
        *_held(evidence),
        ("treatments", words.count(len(treatments))),
        ("blocks", words.count(len(blocks))),
        (
            "measured runs of the design",
            f"{words.count(len(evidence.designed))}: {_of_design(evidence)}",
        ),
        ("control runs", f"{controls}: {_of_controls(evidence)}" if controls != "0" else "none"),
        (
            "treatments left out",
            left_out + (" (the reasons stand in the audit trail)" if evidence.skipped else ""),
        ),
        ("window of a run", words.duration(float(np.median(known))) if known.size else "–"),
        *_time_taken(evidence),
        ("machine", machine_line(evidence.reader.machine)),
    ]
    if evidence.part:
        facts.insert(0, ("part of the design", evidence.part))
    if evidence.study.get("preset"):
        facts.insert(0, ("preset", str(evidence.study["preset"])))
    return Table(
        "what-was-run",
        "What was run",
        [Column("what", ""), Column("value", "")],
        [{"what": what, "value": value} for what, value in facts],
    )


def _level(evidence: Evidence, factor: str, level: Any) -> str:
    """A level with its unit where it has one; a bare count needs no noun beside its heading."""
    titled = factor in words.FACTOR_UNITS or words.plain(level) in evidence.titles.get(factor, {})
    return evidence.title(factor, level) if titled else words.plain(level)


def _held(evidence: Evidence) -> list[tuple[str, str]]:
    """The levels of HELD that all runs share, in words."""
    fixed, variants = evidence.study.get("fixed", {}), evidence.study.get("variants", {})
    own = {name: one.get("levels", {}) for name, one in variants.items()}
    changed = {key for levels in own.values() for key in levels}
    changed |= {name for pair in SAME_THING if pair & changed for name in pair}
    told = [
        evidence.title(name, fixed[name])
        for name in HELD
        if fixed.get(name) not in (None, "") and name not in evidence.factors
        if name not in changed
    ]
    facts = [("in all runs", ", ".join(told))] if told else []
    for name, levels in own.items() if changed else ():
        listed = {**{key: fixed[key] for key in changed if key in fixed}, **levels}
        said = words.listed([f"{key} = {words.plain(level)}" for key, level in listed.items()])
        facts.append((f"in {name}", said or "as the study has it"))
    return facts


def _time_taken(evidence: Evidence) -> list[tuple[str, str]]:
    """Time measured, time waited, and what the wall clock showed, over all attempts."""
    measured_s, waited_s, begins_ns, ends_ns = 0.0, 0.0, [], []
    for at in evidence.attempts.select("run", "attempt").iter_rows(named=True):
        document = evidence.document(at["run"], at["attempt"])
        phases = (document.get("seconds") or {}).values()
        measured_s += sum(float(s) for s in phases if isinstance(s, (int, float)))
        waited = float(conditions_before(document).get("waited_s") or 0.0)
        waited_s += waited
        clocks = document.get("clocks") or {}
        if clocks.get("begin") and clocks.get("end"):
            begins_ns.append(clocks["begin"][0]["realtime_ns"] - int(waited * 1e9))
            ends_ns.append(clocks["end"][-1]["realtime_ns"])
    if not measured_s:
        return []
    wall_s = (max(ends_ns) - min(begins_ns)) / 1e9 if ends_ns else None
    return [
        ("measured time, all attempts added up", words.duration(measured_s)),
        ("waiting for a quiet machine besides", words.duration(waited_s)),
        ("wall time from the first run to the last, waiting and pauses included",
         words.duration(wall_s)),
    ]  # fmt: skip


def machine_line(machine: Mapping[str, Any]) -> str:
    """The hosts in one line: processor, cores, memory, kernel."""
    lines = []
    for known in machine.get("hosts", {}).values():
        facts = {str(f["key"]): f.get("value") for f in known.get("facts", [])}
        told = [str(facts["cpu_name"])] if facts.get("cpu_name") else []
        cpus = next((facts[k] for k in ("cpus", "cores") if facts.get(k)), None)
        told += [f"{cpus} CPUs"] if cpus else []
        memory = next((facts[k] for k in facts if k.startswith("memory") and facts[k]), None)
        if isinstance(memory, (int, float)):
            told.append(f"{words.number(memory / 2**30)} GiB")
        kernel = next((facts[k] for k in facts if k.startswith("kernel")), None)
        told += [f"kernel {kernel}"] if kernel else []
        lines.append(", ".join(told))
    return "; ".join(line for line in lines if line) or words.MISSING
