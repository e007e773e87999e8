"""The audit trail: order, verdicts, what was set aside or absent, plan, machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.contrasts import fit_of
from wattwire.analysis.dataset import Evidence, all_levels, levels_of, same_level
from wattwire.analysis.responses import CPU, LATENCY_P50, Response, measured
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.validity import VALIDITY
from wattwire.report import figures
from wattwire.report.figures.panels import titles_of
from wattwire.report.parts import Column, Figure, Section, Table, Text
from wattwire.report.sections.settings import pairs

ALARM = 0.05


def trail(evidence: Evidence) -> Section:
    """The audit trail: order, verdicts, what was set aside, absent, planned, and the machine."""
    part = Section("audit", "Audit trail")
    figure = _order(evidence)
    if figure is not None:
        part.parts.append(figure)
        part.parts.append(Text(" ".join(one.words for one in carry_over(evidence))))
    part.parts.append(Text(_rejections(evidence)))
    part.parts.append(_without_values(evidence) if evidence.imported else _verdicts(evidence))
    skipped = _skipped(evidence)
    if skipped.rows:
        part.parts.append(skipped)
    if not evidence.imported:  # nobody asked a meter of ours
        part.parts.append(_meters(evidence))
    part.parts.append(_conduct(evidence))
    part.parts.append(_machine(evidence))
    return part


def _order(evidence: Evidence) -> Figure | None:
    if evidence.imported:  # their order is known only as far as their time stamps tell
        return None
    response = CPU if measured(evidence.usable, CPU) else LATENCY_P50
    if not measured(evidence.attempts, response):
        return None
    place = {entry["run"]: at for at, entry in enumerate(evidence.planned, start=1)}
    block_of = {entry["run"]: entry.get("block") for entry in evidence.planned}
    treatments = {entry["run"]: all_levels(entry) for entry in evidence.planned}
    first_of: dict[Any, int] = {}
    for run, at in place.items():
        first_of.setdefault(block_of[run], at)
    both = [frame for frame in (evidence.usable, evidence.controls) if frame.height]
    usable = {run for frame in both for run in frame["run"].to_list()}
    points = []
    values = column(evidence.attempts, response.column)
    for run, value in zip(evidence.attempts["run"].to_list(), values, strict=True):
        if run not in place or not value > 0 or np.isinf(value):
            continue
        block = block_of[run]
        treatment = treatments[run]
        edge = first_of[block] - 0.5 if first_of[block] > 1 else None
        points.append(
            {
                "order": place[run],
                "value": figures.rounded(float(value)),
                "run": run,
                "edge": edge,
                "treatment": evidence.treatment_title(treatment),
                "used": "usable" if run in usable else "set aside",
                "colour": evidence.title(evidence.primary, treatment.get(evidence.primary)),
            }
        )
    return Figure(
        "order",
        "Every run in the order of execution",
        "Drift would show as a slope across the page, a disturbance as a cluster. Dashed lines "
        "part the blocks; hollow marks are runs that were set aside.",
        figures.order_chart(
            points,
            titles_of(evidence, evidence.primary),
            words.factor_title(evidence.primary),
            f"{response.title} ({response.unit}, log scale)",
        ),
    )


@dataclass(frozen=True)
class CarryOver:
    """A sentence on what came before a run; `moved` where it is known to move the response."""

    words: str
    moved: bool = False


def carry_over(evidence: Evidence) -> list[CarryOver]:
    """Whether a run's place inside its block moves its response, and the run before it."""
    response = CPU if measured(evidence.usable, CPU) else LATENCY_P50
    place = column(evidence.usable, "position")
    fit = fit_of(evidence, evidence.usable, response, place)
    found = stats.slope(fit, 10.0) if isinstance(fit, stats.Fit) else fit
    if not isinstance(found, stats.Interval):
        why = f"Carry-over: whether a run's place in its block matters cannot be told ({found})."
        return [CarryOver(why)]
    told = "differs from none" if found.excludes(1.0) else "cannot be told from none"
    place_words = (
        f"Carry-over: ten places later in a block changed the {response.title} by a factor of "
        f"{words.number(found.estimate, 4)} (95 % interval {words.number(found.low, 4)} to "
        f"{words.number(found.high, 4)}, all treatments together), which {told}."
    )
    return [CarryOver(place_words, found.excludes(1.0)), _predecessor(evidence, response)]


def _predecessor(evidence: Evidence, response: Response) -> CarryOver:
    """Whether the primary level of the run before moves the response."""
    levels: dict[str, str | None] = {}
    before: str | None = None
    for entry in evidence.planned:
        levels[entry["run"]] = before
        before = evidence.word(evidence.primary, all_levels(entry).get(evidence.primary))
    values = column(evidence.usable, response.column)
    known = np.flatnonzero(values == values)
    runs, blocks = evidence.usable["run"].to_list(), evidence.usable["block"].to_list()
    factors = {name: levels_of(evidence.usable, name) for name in evidence.varied}
    found = stats.predecessor_effect(
        values[known],
        [blocks[at] for at in known],
        {name: [column_[at] for at in known] for name, column_ in factors.items()},
        [levels[runs[at]] for at in known],
    )
    factor = words.factor_title(evidence.primary)
    if not isinstance(found, stats.Effect):
        why = f"Whether the {factor} of the run before matters cannot be told ({found})."
        return CarryOver(why)
    moved = found.p < ALARM
    told = "moved it" if moved else "cannot be told from none"
    what = f"What the {factor} of the run before did to it: {told} ({words.p_equals(found.p)})."
    return CarryOver(what, moved)


def _rejections(evidence: Evidence) -> str:
    counting = evidence.usable.height + evidence.set_aside.height
    if counting == 0:
        return "No run was tried."
    told = f"{words.count(evidence.set_aside.height)} of {words.plural(counting, 'run')} set aside."
    levels = evidence.factors.get(evidence.primary, ())
    if len(levels) < 2 or evidence.set_aside.height == 0:
        return told
    tallies = []
    of_design = [*evidence.usable["run"].to_list(), *evidence.set_aside["run"].to_list()]
    for level in levels:
        runs = [
            run
            for run in of_design
            if same_level(all_levels(evidence.runs[run]).get(evidence.primary), level)
        ]
        bad = sum(evidence.runs[run].get("verdict") != "ok" for run in runs)
        tallies.append((evidence.title(evidence.primary, level), bad, len(runs)))
    told += " By " + words.factor_title(evidence.primary) + ": "
    told += "; ".join(f"{name} {bad} of {total}" for name, bad, total in tallies)
    if len(tallies) == 2:
        p = stats.same_share_p(tallies[0][1], tallies[0][2], tallies[1][1], tallies[1][2])
        told += " (Fisher's exact test that both are set aside equally often: "
        told += f"p = {words.number(p, 2)})"
    return told + "."


def _verdicts(evidence: Evidence) -> Table:
    rows = []
    for at in evidence.attempts.iter_rows(named=True):
        counts = evidence.runs[at["run"]].get("attempt") == at["attempt"]
        sound = at.get("verdict") == "ok" and at.get("outcome") == "completed"
        if sound and (at.get("used") or (at.get("control") and counts)):
            continue
        document = evidence.document(at["run"], at["attempt"])
        reasons = [_reason(r) for r in document.get("reasons", [])]
        if document.get("outcome_detail"):
            reasons.append(str(document["outcome_detail"]))
        rows.append(
            {
                "run": at["run"],
                "attempt": at.get("attempt"),
                "block": at.get("block"),
                "treatment": evidence.treatment_title(all_levels(document)),
                "outcome": str(at.get("outcome")),
                "verdict": str(at.get("verdict")),
                "counts": "yes" if counts else "no, another attempt does",
                "reasons": "; ".join(reasons),
            }
        )
    ordinary = evidence.attempts.height - len(rows)
    return Table(
        "verdicts",
        "Attempts that were not ordinary",
        [
            Column("run", "run"),
            Column("attempt", "attempt", "measured"),
            Column("block", "block", "measured"),
            Column("treatment", "treatment"),
            Column("outcome", "outcome"),
            Column("verdict", "verdict"),
            Column("counts", "counts"),
            Column("reasons", "reasons and evidence"),
        ],
        rows,
        f"The other {words.plural(ordinary, 'attempt')} completed with verdict ok. An outcome is a "
        "result and stays in the answers; only a verdict other than ok sets a run aside.",
    )


def _without_values(evidence: Evidence) -> Table:
    """Why runs of others carry no value: hundreds may share a reason."""
    runs: dict[str, list[str]] = {}
    for run in evidence.set_aside["run"].to_list() if evidence.set_aside.height else []:
        told = [str(r.get("detail", "")) for r in evidence.runs[run].get("reasons", [])]
        runs.setdefault("; ".join(told) or "no reason told", []).append(run)
    return Table(
        "verdicts",
        "Runs that cannot be used",
        [
            Column("because", "because"),
            Column("count", "runs", "measured"),
            Column("runs", "which"),
        ],
        [
            {"because": because, "count": len(names), "runs": ", ".join(names)}
            for because, names in runs.items()
        ],
    )


def _reason(reason: Mapping[str, Any]) -> str:
    told = f"{reason.get('code', '')}: {reason.get('detail', '')}".strip(": ")
    evidence = reason.get("evidence")
    if isinstance(evidence, Mapping):
        evidence = pairs(evidence)
    return f"{told} ({evidence})" if evidence else told


def _skipped(evidence: Evidence) -> Table:
    tallies: dict[tuple[str, str], None] = {}
    for entry in evidence.skipped:
        key = (evidence.treatment_title(all_levels(entry)), str(entry["skipped"]))
        tallies[key] = None
    return Table(
        "skipped",
        "Treatments left out",
        [
            Column("treatment", "treatment"),
            Column("because", "because"),
        ],
        [{"treatment": treatment, "because": because} for treatment, because in tallies],
    )


def _meters(evidence: Evidence) -> Table:
    rows = []
    for host, known in evidence.reader.machine.get("hosts", {}).items():
        for meter in known.get("meters", []):
            rows.append(
                {
                    "host": host,
                    "meter": meter["name"],
                    "state": meter["state"],
                    "because": str(meter.get("reason") or ""),
                    "grant": str(meter.get("grant") or ""),
                }
            )
    return Table(
        "meters",
        "Meters",
        [
            Column("host", "host"),
            Column("meter", "meter"),
            Column("state", "state"),
            Column("because", "because"),
            Column("grant", "what would grant it"),
        ],
        sorted(rows, key=lambda row: (row["state"] == "present", row["meter"])),
    )


def _conduct(evidence: Evidence) -> Table:
    plan = evidence.study.get("plan", {})
    rows = [{"key": f"plan.{k}", "value": words.plain(v)} for k, v in sorted(plan.items())]
    limits = evidence.study.get(VALIDITY, {})
    rows += [{"key": f"{VALIDITY}.{k}", "value": words.plain(v)} for k, v in sorted(limits.items())]
    rows += [
        {"key": f"fixed.{k}", "value": words.plain(v)}
        for k, v in sorted(evidence.study.get("fixed", {}).items())
    ]
    lengths = _baseline_lengths(evidence)
    rows += [
        {"key": f"baseline {name}, median", "value": words.duration(s)}
        for name, s in lengths.items()
    ]
    retried = sum(
        1 for at in evidence.attempts.iter_rows(named=True) if (at.get("attempt") or 1) > 1
    )
    rows.append({"key": "attempts beyond the first", "value": words.count(retried)})
    return Table(
        "conduct",
        "Plan, validity limits and fixed settings",
        [Column("key", "key"), Column("value", "value")],
        rows,
    )


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
            rows.append(
                {
                    "host": host,
                    "key": str(fact["key"]),
                    "unit": str(fact.get("unit") or ""),
                    "value": words.plain(fact.get("value")),
                }
            )
        cgroup = known.get("cgroup") or {}
        if cgroup:
            lost = "; ".join(str(x) for x in cgroup.get("lost", []))
            value = f"{cgroup.get('rung')}{f' (lost: {lost})' if lost else ''}"
            rows.append({"host": host, "key": "cgroup", "value": value, "unit": ""})
        rights = known.get("rights")
        if isinstance(rights, Mapping):
            rows.append({"host": host, "key": "rights", "value": pairs(rights), "unit": ""})
    versions = machine.get("versions") or {}
    rows += [
        {"host": "", "key": f"version of {k}", "value": words.plain(v), "unit": ""}
        for k, v in versions.items()
    ]
    return Table(
        "machine",
        "Machine and versions",
        [
            Column("host", "host"),
            Column("key", "key"),
            Column("value", "value"),
            Column("unit", "unit"),
        ],
        rows,
    )
