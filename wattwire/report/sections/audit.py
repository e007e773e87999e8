"""Build the audit trail of run order, verdicts, exclusions, absent meters, plan and machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.charts import titles_of, tone_of
from wattwire.analysis.dataset import Evidence, all_levels, same_level
from wattwire.analysis.responses import CPU, LATENCY_P50, measured
from wattwire.analysis.topics.settings.nested_tables import pairs
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.validity import VALIDITY
from wattwire.report import figures
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Figure, Section, Table, Text
from wattwire.report.topic_page import Placed
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "audit",
    {
        "title": "Audit trail",
        "order": "Runs in order of execution",
        "order_caption": (
            "Drift appears as a slope, and a disturbance appears as a cluster of runs. Dashed "
            "lines separate blocks. Hollow marks are excluded runs."
        ),
        "no_attempt": "No run was attempted.",
        "excluded": "Excluded: {excluded:count} of {runs:plural run}.",
        "excluded_by": "By {factor}: {levels}{test}.",
        "excluded_level": "{level} {excluded} of {runs}",
        "excluded_equally": (
            " (Fisher's exact test for equal shares of excluded runs: p = {p:number 2})"
        ),
        "verdicts": "Attempts with problems or retries",
        "verdicts_note": (
            "The other {others:plural attempt} completed with the verdict “valid”. An outcome is a "
            "result and does not exclude the run. Only a verdict other than “valid” excludes a "
            "run."
        ),
        "unusable": "Runs that are not valid",
        "no_reason": "no reason recorded",
        "skipped": "Skipped treatments",
        "meters": "Meters",
        "conduct": "Plan, validity limits and fixed settings",
        "machine": "Machine and versions",
    },
)


def trail(evidence: Evidence, joining: Sequence[Placed] = ()) -> Section:
    """Return the section with the audit trail. The parts of topics follow the order of the runs."""
    part = Section("audit", PHRASES("title"))
    figure = _order_figure(evidence)
    if figure is not None:
        part.parts.append(figure)
    part.parts += [joining_part for _, joining_part in joining]
    part.parts.append(Text(_exclusion_text(evidence)))
    part.parts.append(_unusable_table(evidence) if evidence.imported else _verdicts(evidence))
    skipped = _skipped(evidence)
    if skipped.rows:
        part.parts.append(skipped)
    if not evidence.imported:  # an imported campaign did not use wattwire's meters
        part.parts.append(_meters(evidence))
    part.parts.append(_plan_table(evidence))
    part.parts.append(_machine(evidence))
    return part


def _order_figure(evidence: Evidence) -> Figure | None:
    if evidence.imported:  # time stamps alone determine the order of imported runs
        return None
    response = CPU if measured(evidence.usable, CPU) else LATENCY_P50
    if not measured(evidence.attempts, response):
        return None
    positions = {entry["run"]: position for position, entry in enumerate(evidence.planned, start=1)}
    block_of = {entry["run"]: entry.get("block") for entry in evidence.planned}
    treatments = {entry["run"]: all_levels(entry) for entry in evidence.planned}
    block_starts: dict[Any, int] = {}
    for run, position in positions.items():
        block_starts.setdefault(block_of[run], position)
    frames = [frame for frame in (evidence.usable, evidence.controls) if frame.height]
    usable = {run for frame in frames for run in frame["run"].to_list()}
    points = []
    values = column(evidence.attempts, response.column)
    for run, value in zip(evidence.attempts["run"].to_list(), values, strict=True):
        if run not in positions or not value > 0 or np.isinf(value):
            continue
        block = block_of[run]
        treatment = treatments[run]
        edge = block_starts[block] - 0.5 if block_starts[block] > 1 else None
        points.append(
            {
                "order": positions[run],
                "value": figures.rounded(float(value)),
                "run": run,
                "edge": edge,
                "treatment": evidence.treatment_title(treatment),
                "used": "valid" if run in usable else "excluded",
                "colour": tone_of(evidence, treatment),
            }
        )
    return Figure(
        "order",
        PHRASES("order"),
        PHRASES("order_caption"),
        figures.order_chart(
            points,
            titles_of(evidence, evidence.primary),
            words.factor_title(evidence.primary),
            f"{response.title} ({response.unit}, log scale)",
        ),
    )


def _exclusion_text(evidence: Evidence) -> Phrase:
    run_count = evidence.usable.height + evidence.excluded.height
    if run_count == 0:
        return PHRASES("no_attempt")
    text = PHRASES("excluded", excluded=evidence.excluded.height, runs=run_count)
    levels = evidence.factors.get(evidence.primary, ())
    if len(levels) < 2 or evidence.excluded.height == 0:
        return text
    tallies = []
    design_runs = [*evidence.usable["run"].to_list(), *evidence.excluded["run"].to_list()]
    for level in levels:
        runs = [
            run
            for run in design_runs
            if same_level(all_levels(evidence.runs[run]).get(evidence.primary), level)
        ]
        excluded = sum(evidence.runs[run].get("verdict") != "valid" for run in runs)
        tallies.append((evidence.title(evidence.primary, level), excluded, len(runs)))
    test = Phrase()
    if len(tallies) == 2:
        p = stats.same_share_p(tallies[0][1], tallies[0][2], tallies[1][1], tallies[1][2])
        test = PHRASES("excluded_equally", p=p)
    level_texts = [
        PHRASES("excluded_level", level=name, excluded=excluded, runs=total)
        for name, excluded, total in tallies
    ]
    factor = words.factor_title(evidence.primary)
    by_level = PHRASES("excluded_by", factor=factor, levels=joined(level_texts, "; "), test=test)
    return joined([text, by_level])


def _verdicts(evidence: Evidence) -> Table:
    rows = []
    for attempt in evidence.attempts.iter_rows(named=True):
        counts = evidence.runs[attempt["run"]].get("attempt") == attempt["attempt"]
        sound = attempt.get("verdict") == "valid" and attempt.get("outcome") == "completed"
        if sound and (attempt.get("used") or (attempt.get("control") and counts)):
            continue
        document = evidence.document(attempt["run"], attempt["attempt"])
        reasons = [_reason(reason) for reason in document.get("reasons", [])]
        if document.get("outcome_detail"):
            reasons.append(str(document["outcome_detail"]))
        rows.append(
            {
                "run": attempt["run"],
                "attempt": attempt.get("attempt"),
                "block": attempt.get("block"),
                "treatment": evidence.treatment_title(all_levels(document)),
                "outcome": str(attempt.get("outcome")),
                "verdict": str(attempt.get("verdict")),
                "counts": "yes" if counts else "no, replaced by another attempt",
                "reasons": "; ".join(reasons),
            }
        )
    ordinary = evidence.attempts.height - len(rows)
    return Table(
        "verdicts",
        PHRASES("verdicts"),
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
        PHRASES("verdicts_note", others=ordinary),
    )


def _unusable_table(evidence: Evidence) -> Table:
    """Return a table of imported runs without a value, grouped by reason."""
    runs: dict[str, list[str]] = {}
    for run in evidence.excluded["run"].to_list() if evidence.excluded.height else []:
        details = [
            str(reason.get("detail", "")) for reason in evidence.runs[run].get("reasons", [])
        ]
        runs.setdefault("; ".join(details) or PHRASES("no_reason"), []).append(run)
    return Table(
        "verdicts",
        PHRASES("unusable"),
        [
            Column("because", "reason"),
            Column("count", "runs", "measured"),
            Column("runs", "which"),
        ],
        [
            {"because": because, "count": len(names), "runs": ", ".join(names)}
            for because, names in runs.items()
        ],
    )


def _reason(reason: Mapping[str, Any]) -> str:
    return f"{reason.get('code', '')}: {reason.get('detail', '')}".strip(": ")


def _skipped(evidence: Evidence) -> Table:
    treatments: dict[tuple[str, str], None] = {}
    for entry in evidence.skipped:
        key = (evidence.treatment_title(all_levels(entry)), str(entry["skipped"]))
        treatments[key] = None
    return Table(
        "skipped",
        PHRASES("skipped"),
        [
            Column("treatment", "treatment"),
            Column("because", "reason"),
        ],
        [{"treatment": treatment, "because": because} for treatment, because in treatments],
    )


def _meters(evidence: Evidence) -> Table:
    rows = []
    for host, host_entry in evidence.reader.machine.get("hosts", {}).items():
        for meter in host_entry.get("meters", []):
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
        PHRASES("meters"),
        [
            Column("host", "host"),
            Column("meter", "meter"),
            Column("state", "state"),
            Column("because", "reason"),
            Column("grant", "how to enable it"),
        ],
        sorted(rows, key=lambda row: (row["state"] == "present", row["meter"])),
    )


def _plan_table(evidence: Evidence) -> Table:
    rows = [
        {"key": f"{table}.{key}", "value": words.plain(value)}
        for table in ("plan", VALIDITY, "fixed")
        for key, value in sorted(evidence.study.stated(table).items())
    ]
    lengths_s = _baseline_lengths_s(evidence)
    rows += [
        {"key": f"baseline {name}, median", "value": words.duration(length_s)}
        for name, length_s in lengths_s.items()
    ]
    retried = sum(
        1
        for attempt in evidence.attempts.iter_rows(named=True)
        if (attempt.get("attempt") or 1) > 1
    )
    rows.append({"key": "attempts beyond the first", "value": words.count(retried)})
    return Table(
        "conduct",
        PHRASES("conduct"),
        [Column("key", "key"), Column("value", "value")],
        rows,
    )


def _baseline_lengths_s(evidence: Evidence) -> dict[str, float]:
    lengths_s: dict[str, list[float]] = {}
    for run in evidence.runs.values():
        for name, span in (run.get("baselines") or {}).items():
            if span and span.get("end_ns") is not None and span.get("begin_ns") is not None:
                lengths_s.setdefault(name, []).append((span["end_ns"] - span["begin_ns"]) / 1e9)
    return {name: float(np.median(values_s)) for name, values_s in lengths_s.items()}


def _machine(evidence: Evidence) -> Table:
    machine = evidence.reader.machine
    rows = []
    for host, host_entry in machine.get("hosts", {}).items():
        for fact in host_entry.get("facts", []):
            rows.append(
                {
                    "host": host,
                    "key": str(fact["key"]),
                    "unit": str(fact.get("unit") or ""),
                    "value": words.plain(fact.get("value")),
                }
            )
        cgroup = host_entry.get("cgroup") or {}
        if cgroup:
            lost = "; ".join(str(item) for item in cgroup.get("lost", []))
            value = f"{cgroup.get('rung')}{f' (lost: {lost})' if lost else ''}"
            rows.append({"host": host, "key": "cgroup", "value": value, "unit": ""})
        rights = host_entry.get("rights")
        if isinstance(rights, Mapping):
            rows.append({"host": host, "key": "rights", "value": pairs(rights), "unit": ""})
    versions = machine.get("versions") or {}
    rows += [
        {"host": "", "key": f"version of {key}", "value": words.plain(value), "unit": ""}
        for key, value in versions.items()
    ]
    return Table(
        "machine",
        PHRASES("machine"),
        [
            Column("host", "host"),
            Column("key", "key"),
            Column("value", "value"),
            Column("unit", "unit"),
        ],
        rows,
    )


PART = PagePart(200, lambda data: [trail(data.evidence, data.joining("audit"))])
