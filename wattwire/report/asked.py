"""What was asked and what was run, before any answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from wattwire.report import costs, words
from wattwire.report.evidence import Evidence, all_levels
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.responses import resolve


def section(evidence: Evidence) -> Section:
    """The page's first part: goal, questions, metrics, and what was executed."""
    part = Section("asked", "What was asked, what was run")
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
            "factors": words.listed([words.factor_title(f) for f in q.get("factors", [])]),
            "responses": words.listed([resolve(r).title for r in q.get("responses", [])]),
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
    return part


def second_line(evidence: Evidence) -> str:
    """The line under the first sentence: how much stands behind it, and on which machine."""
    own = [entry for entry in evidence.planned if not entry.get("control")]
    told = [f"{words.plural(len(own), 'run')} planned, {evidence.usable.height} usable"]
    if evidence.set_aside.height:
        told.append(f"{evidence.set_aside.height} set aside")
    if evidence.controls.height:
        told.append(f"{words.plural(evidence.controls.height, 'control run')} beside them")
    if evidence.skipped:
        told.append(f"{words.plural(len(evidence.skipped), 'treatment')} left out")
    return ", ".join(told) + ". " + machine_line(evidence.reader.machine) + "."


def _run_table(evidence: Evidence) -> Table:
    planned = evidence.planned
    controls = sum(bool(entry.get("control")) for entry in planned)
    treatments = {json.dumps(all_levels(e), sort_keys=True) for e in planned}
    blocks = {e.get("block") for e in planned}
    tried = set(evidence.attempts["run"].to_list()) if evidence.attempts.height else set()
    seconds = sum(
        float(s)
        for run in evidence.runs.values()
        for s in (run.get("seconds") or {}).values()
        if isinstance(s, (int, float))
    )
    windows = costs.window_seconds(evidence, evidence.usable)
    facts: list[tuple[str, str]] = [
        (words.factor_title(name), ", ".join(words.plain(v) for v in levels))
        for name, levels in evidence.factors.items()
    ]
    facts += [
        ("treatments", words.count(len(treatments))),
        ("blocks", words.count(len(blocks))),
        ("runs planned", words.count(len(planned) - controls)),
        *([("control runs besides", words.count(controls))] if controls else []),
        ("runs usable", words.count(evidence.usable.height)),
        ("runs set aside", words.count(evidence.set_aside.height)),
        ("runs not tried yet", words.count(len({e["run"] for e in planned} - tried))),
        (
            "treatments left out",
            words.count(len(evidence.skipped))
            + (" (the reasons stand in the audit trail)" if evidence.skipped else ""),
        ),
        ("window of a run", words.duration(float(np.nanmedian(windows))) if windows.size else "–"),
        ("duration of all runs", words.duration(seconds) if seconds else words.MISSING),
        ("machine", machine_line(evidence.reader.machine)),
    ]
    if evidence.study.get("preset"):
        facts.insert(0, ("preset", str(evidence.study["preset"])))
    return Table(
        "what-was-run",
        "What was run",
        [Column("what", ""), Column("value", "")],
        [{"what": what, "value": value} for what, value in facts],
    )


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
