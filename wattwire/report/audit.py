"""What may be doubted: own cost, settings in force, order, verdicts, what was absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.report import figures, words
from wattwire.report.evidence import Evidence, column
from wattwire.report.latency import titles_of
from wattwire.report.parts import Column, Figure, Section, Table, Text
from wattwire.report.responses import CPU, LATENCY_P50, measured

OWN = (
    ("harness_cpu_share", "CPU of agent and recorder", "share of one core"),
    ("steal_share", "CPU taken by other virtual machines", "share"),
    ("other_load_share", "load of other processes", "share"),
    ("schedule_late_p99_us", "lateness of sending, 99th percentile of a run", "µs"),
)


def harness(evidence: Evidence) -> Section:
    """The page's part about what measuring cost."""
    part = Section("harness", "What measuring cost")
    rows = []
    for name, title, unit in OWN:
        values = column(evidence.usable, name)
        values = values[np.isfinite(values)]
        if values.size:
            rows.append({"what": title, "unit": unit, "median": float(np.median(values)),
                         "highest": float(values.max()), "runs": int(values.size)})  # fmt: skip
    phases: dict[str, list[float]] = {}
    for run in evidence.runs.values():
        for phase, seconds in (run.get("seconds") or {}).items():
            if isinstance(seconds, (int, float)):
                phases.setdefault(phase, []).append(float(seconds))
    if rows:
        part.parts.append(_wide_table("harness-cost", "Own cost and disturbance per run", rows))
    if phases:
        part.parts.append(
            Table(
                "phases", "Where a run's time goes",
                [Column("phase", "phase"), Column("median", "median", "measured", "s"),
                 Column("highest", "longest", "measured", "s"),
                 Column("total", "all runs", "measured", "s")],
                [{"phase": phase.replace("_", " "), "median": float(np.median(s)),
                  "highest": max(s), "total": sum(s)} for phase, s in phases.items()],
            )
        )  # fmt: skip
    if not part.parts:
        part.parts.append(Text("No run recorded its own cost.", "warning"))
    return part


def _wide_table(table_id: str, title: str, rows: list[dict[str, Any]]) -> Table:
    return Table(
        table_id, title,
        [Column("what", "what"), Column("unit", "unit"), Column("median", "median run", "measured"),
         Column("highest", "highest run", "measured"), Column("runs", "runs", "measured")],
        rows,
    )  # fmt: skip


def settings(evidence: Evidence) -> Section:
    """The page's part about the settings in force, as the libraries told them."""
    part = Section("settings", "Settings in force")
    cards: dict[tuple[str, ...], dict[str, Any]] = {}
    guarantees: dict[str, set[str]] = {}
    for run_id, run in evidence.runs.items():
        for node in run.get("nodes", []):
            ready = node.get("ready")
            if not ready:
                continue
            row = _card(node, ready, str(run.get("treatment", {}).get("pattern", "")))
            guarantees.setdefault(row["pattern"], set()).add(row["guarantee"])
            card = cards.setdefault(tuple(row.values()), row | {"run_ids": set()})
            card["run_ids"].add(run_id)
    if not cards:
        part.parts.append(Text("No node reported its settings.", "warning"))
        return part
    for pattern, kinds in guarantees.items():
        if len(kinds) > 1:
            part.parts.append(
                Text(f"Not like for like: {pattern or 'the nodes'} ran under "
                     f"{len(kinds)} different guarantees: {'; '.join(sorted(kinds))}.", "warning")
            )  # fmt: skip
    rows = [card | {"runs": len(card["run_ids"])} for _, card in sorted(cards.items())]
    part.parts.append(
        Table(
            "settings-in-force", "What each node said it was using",
            [Column("cell", "cell"), Column("pattern", "pattern"), Column("role", "role"),
             Column("library", "library"), Column("effective", "in force"),
             Column("guarantee", "guarantee"), Column("runs", "runs", "measured")],
            rows,
            "Asked of the library at READY where it can tell; identical nodes share a row.",
        )
    )  # fmt: skip
    return part


def _card(node: Mapping[str, Any], ready: Mapping[str, Any], pattern: str) -> dict[str, str]:
    library = ready.get("library") or {}
    named = " ".join(str(library[k]) for k in ("name", "version", "build") if library.get(k))
    return {
        "cell": str(node.get("cell", "")),
        "pattern": pattern,
        "role": str(node.get("role", "")),
        "library": named,
        "effective": pairs(ready.get("effective") or {}),
        "guarantee": ", ".join(str(v) for v in (ready.get("guarantee") or {}).values()),
    }


def pairs(table: Mapping[str, Any]) -> str:
    """A nested table as `a = 1, b.c = 2`."""
    told = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            told += [f"{key}.{part}" for part in pairs(value).split(", ") if part]
        else:
            told.append(f"{key} = {words.plain(value)}")
    return ", ".join(told)


def trail(evidence: Evidence) -> Section:
    """The audit trail: order, verdicts, what was set aside, absent, planned, and the machine."""
    part = Section("audit", "Audit trail")
    figure = _order(evidence)
    if figure is not None:
        part.parts.append(figure)
    part.parts.append(Text(_rejections(evidence)))
    part.parts.append(_verdicts(evidence))
    skipped = _skipped(evidence)
    if skipped.rows:
        part.parts.append(skipped)
    part.parts.append(_meters(evidence))
    part.parts.append(_conduct(evidence))
    part.parts.append(_machine(evidence))
    part.parts.append(Text(threats(evidence), "note"))
    return part


def _order(evidence: Evidence) -> Figure | None:
    response = CPU if measured(evidence.usable, CPU) else LATENCY_P50
    if not measured(evidence.attempts, response):
        return None
    place = {entry["run"]: at for at, entry in enumerate(evidence.planned, start=1)}
    block_of = {entry["run"]: entry.get("block") for entry in evidence.planned}
    treatments = {entry["run"]: entry.get("treatment", {}) for entry in evidence.plan}
    first_of: dict[Any, int] = {}
    for run, at in place.items():
        first_of.setdefault(block_of[run], at)
    usable = set(evidence.usable["run"].to_list()) if evidence.usable.height else set()
    points = []
    values = column(evidence.attempts, response.column)
    for run, value in zip(evidence.attempts["run"].to_list(), values, strict=True):
        if run not in place or not value > 0 or np.isinf(value):
            continue
        block = block_of[run]
        treatment = treatments[run]
        edge = first_of[block] - 0.5 if first_of[block] > 1 else None
        points.append(
            {"order": place[run], "value": figures.rounded(float(value)), "run": run,
             "edge": edge, "treatment": evidence.treatment_title(treatment),
             "used": "usable" if run in usable else "set aside",
             "colour": evidence.title(evidence.primary, treatment.get(evidence.primary))}
        )  # fmt: skip
    return Figure(
        "order", "Every run in the order of execution",
        "Drift would show as a slope across the page, a disturbance as a cluster. Dashed lines "
        "part the blocks; crosses are runs that were set aside.",
        figures.order_chart(
            points, titles_of(evidence, evidence.primary), words.factor_title(evidence.primary),
            f"{response.title} ({response.unit}, log scale)",
        ),
    )  # fmt: skip


def _rejections(evidence: Evidence) -> str:
    counting = evidence.usable.height + evidence.set_aside.height
    if counting == 0:
        return "No run was tried."
    told = f"{words.count(evidence.set_aside.height)} of {words.plural(counting, 'run')} set aside."
    levels = evidence.factors.get(evidence.primary, ())
    if len(levels) < 2 or evidence.set_aside.height == 0:
        return told
    tallies = []
    for level in levels:
        runs = [
            run for run, doc in evidence.runs.items()
            if words.plain(doc.get("treatment", {}).get(evidence.primary)) == words.plain(level)
        ]  # fmt: skip
        bad = sum(evidence.runs[run].get("verdict") != "ok" for run in runs)
        tallies.append((evidence.title(evidence.primary, level), bad, len(runs)))
    told += " By " + words.factor_title(evidence.primary) + ": "
    told += "; ".join(f"{name} {bad} of {total}" for name, bad, total in tallies)
    if len(tallies) == 2:
        p = stats.same_share_p(tallies[0][1], tallies[0][2], tallies[1][1], tallies[1][2])
        told += f" (Fisher's exact test that both are set aside equally often: p = {words.number(p, 2)})"
    return told + "."


def _verdicts(evidence: Evidence) -> Table:
    rows = []
    for at in evidence.attempts.iter_rows(named=True):
        document = evidence.runs.get(at["run"], {})
        if at.get("verdict") == "ok" and at.get("outcome") == "completed" and at.get("used"):
            continue
        matches = document.get("attempt") == at.get("attempt")
        reasons = document.get("reasons", []) if matches else []
        rows.append(
            {"run": at["run"], "attempt": at.get("attempt"), "block": at.get("block"),
             "treatment": evidence.treatment_title(document.get("treatment", {})),
             "outcome": str(at.get("outcome")), "verdict": str(at.get("verdict")),
             "counts": "yes" if at.get("used") else "no, tried again",
             "reasons": "; ".join(_reason(r) for r in reasons)}
        )  # fmt: skip
    ordinary = evidence.attempts.height - len(rows)
    return Table(
        "verdicts", "Attempts that were not ordinary",
        [Column("run", "run"), Column("attempt", "attempt", "measured"),
         Column("block", "block", "measured"), Column("treatment", "treatment"),
         Column("outcome", "outcome"), Column("verdict", "verdict"), Column("counts", "counts"),
         Column("reasons", "reasons and evidence")],
        rows,
        f"The other {words.plural(ordinary, 'attempt')} completed with verdict ok. An outcome is a "
        "result and stays in the answers; only a verdict other than ok sets a run aside.",
    )  # fmt: skip


def _reason(reason: Mapping[str, Any]) -> str:
    told = f"{reason.get('code', '')}: {reason.get('detail', '')}".strip(": ")
    evidence = reason.get("evidence")
    if isinstance(evidence, Mapping):
        evidence = pairs(evidence)
    return f"{told} ({evidence})" if evidence else told


def _skipped(evidence: Evidence) -> Table:
    tallies: dict[tuple[str, str], int] = {}
    for entry in evidence.skipped:
        key = (evidence.treatment_title(entry.get("treatment", {})), str(entry["skipped"]))
        tallies[key] = tallies.get(key, 0) + 1
    return Table(
        "skipped", "Planned, but cannot be run here",
        [Column("treatment", "treatment"), Column("because", "because"),
         Column("runs", "runs", "measured")],
        [{"treatment": treatment, "because": because, "runs": runs}
         for (treatment, because), runs in tallies.items()],
    )  # fmt: skip


def _meters(evidence: Evidence) -> Table:
    rows = []
    for host, known in evidence.reader.machine.get("hosts", {}).items():
        for meter in known.get("meters", []):
            rows.append(
                {"host": host, "meter": meter["name"], "state": meter["state"],
                 "because": str(meter.get("reason") or ""),
                 "grant": str(meter.get("grant") or "")}
            )  # fmt: skip
    return Table(
        "meters", "Meters",
        [Column("host", "host"), Column("meter", "meter"), Column("state", "state"),
         Column("because", "because"), Column("grant", "what would grant it")],
        sorted(rows, key=lambda row: (row["state"] == "present", row["meter"])),
    )  # fmt: skip


def _conduct(evidence: Evidence) -> Table:
    plan = evidence.study.get("plan", {})
    rows = [{"key": f"plan.{k}", "value": words.plain(v)} for k, v in sorted(plan.items())]
    guards = evidence.study.get("guards", {})
    rows += [{"key": f"guards.{k}", "value": words.plain(v)} for k, v in sorted(guards.items())]
    rows += [
        {"key": f"fixed.{k}", "value": words.plain(v)}
        for k, v in sorted(evidence.study.get("fixed", {}).items())
    ]
    lengths = _baseline_lengths(evidence)
    rows += [{"key": f"baseline {name}, median", "value": words.duration(s)}
             for name, s in lengths.items()]  # fmt: skip
    retried = sum(
        1 for at in evidence.attempts.iter_rows(named=True) if (at.get("attempt") or 1) > 1
    )
    rows.append({"key": "attempts beyond the first", "value": words.count(retried)})
    return Table(
        "conduct", "Plan, guards and fixed settings",
        [Column("key", "key"), Column("value", "value")], rows,
    )  # fmt: skip


def _baseline_lengths(evidence: Evidence) -> dict[str, float]:
    lengths: dict[str, list[float]] = {}
    for run in evidence.runs.values():
        for name, span in (run.get("baselines") or {}).items():
            if span and span.get("end_ns") is not None and span.get("begin_ns") is not None:
                lengths.setdefault(name, []).append((span["end_ns"] - span["begin_ns"]) / 1e9)
    return {name: float(np.median(all_s)) for name, all_s in lengths.items()}


def _machine(evidence: Evidence) -> Table:
    machine = evidence.reader.machine
    rows = []
    for host, known in machine.get("hosts", {}).items():
        for fact in known.get("facts", []):
            rows.append({"host": host, "key": str(fact["key"]), "unit": str(fact.get("unit") or ""),
                         "value": words.plain(fact.get("value"))})  # fmt: skip
        cgroup = known.get("cgroup") or {}
        if cgroup:
            lost = "; ".join(str(x) for x in cgroup.get("lost", []))
            value = f"{cgroup.get('rung')}{f' (lost: {lost})' if lost else ''}"
            rows.append({"host": host, "key": "cgroup", "value": value, "unit": ""})
        rights = known.get("rights")
        if isinstance(rights, Mapping):
            rows.append({"host": host, "key": "rights", "value": pairs(rights), "unit": ""})
    versions = machine.get("versions") or {}
    rows += [{"host": "", "key": f"version of {k}", "value": words.plain(v), "unit": ""}
             for k, v in versions.items()]  # fmt: skip
    return Table(
        "machine", "Machine and versions",
        [Column("host", "host"), Column("key", "key"), Column("value", "value"),
         Column("unit", "unit")], rows,
    )  # fmt: skip


def threats(evidence: Evidence) -> str:
    """One paragraph on what these numbers do not say."""
    blocks = evidence.usable["block"].n_unique() if evidence.usable.height else 0
    told = [
        "Threats to validity. One machine, one boot, one build: nothing here speaks for others, "
        "and library versions are part of the result.",
        "All nodes share this machine, so a sender may pay for work done on behalf of its receiver "
        "(kernel network time stays with the process in whose context it ran).",
        "Messages inside a run are not independent and add no degrees of freedom; the unit is the "
        "run.",
    ]
    if blocks == 1:
        told.append(
            "One block: no interval per treatment; drift cannot be separated from the effects, and "
            "interactions between factors stand in the error."
        )
    told.append(
        "The error is pooled over treatments on the log scale; a treatment that scatters more than "
        "the others gets an interval that is too narrow."
    )
    return " ".join(told)
