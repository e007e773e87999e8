"""The page's section on message counts (sent, received, failed, lost, late) and node starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.tables.factor_columns import factor_columns

COUNTS = (
    "sent", "expected", "received_unique", "failed", "lost", "late", "duplicates", "corrupt",
    "foreign",
)  # fmt: skip
TITLES = {"received_unique": "received"}
FAILED_MEANS = (
    "A failed call ended with an error before its timeout; like a lost one it counts as +∞ in "
    "latency."
)
UNKNOWN = "a sender ended and left no records"
NAMED_MAX = 5
"""Number of treatments with failed calls that a sentence names one by one."""


def section(evidence: Evidence) -> Section:
    """Return the section on message counts, losses and node starts."""
    part = Section("counts", "Counts, losses, starts")
    if evidence.usable.height == 0:
        part.has_no_data = True
        part.parts.append(Text("No usable run has counts.", "warning"))
        return part
    part.parts.append(Text(_loss_words(evidence)))
    failed = failed_words(evidence)
    if failed:
        part.parts.append(Text(f"{failed} {FAILED_MEANS}", "warning"))
    part.parts.append(_counts_table(evidence))
    part.parts.append(_starts_table(evidence))
    return part


def _loss_words(evidence: Evidence) -> str:
    frame = evidence.usable
    expected, lost = column(frame, "expected"), column(frame, "lost")
    due_sum, lost_sum = np.nansum(expected), np.nansum(lost)
    runs_with_loss = int((lost > 0).sum())
    unknown_runs = frame["sent"].null_count() if "sent" in frame.columns else 0
    if unknown_runs == frame.height:
        return (
            "The number of messages sent is unknown in all runs "
            f"({words.count(unknown_runs)}): {UNKNOWN}."
        )
    return _loss_sentence(due_sum, lost_sum, runs_with_loss, frame.height) + (
        f" The number of messages sent is unknown in {words.plural(unknown_runs, 'run')}: "
        f"{UNKNOWN}."
        if unknown_runs
        else ""
    )


def _loss_sentence(due: float, lost: float, runs_with_loss: int, runs: int) -> str:
    if lost == 0:
        return f"None of {words.count(float(due))} expected receptions was lost."
    return (
        f"{words.count(float(lost))} of {words.count(float(due))} expected receptions were lost "
        f"({words.percent(float(lost / due))}), in {runs_with_loss} of "
        f"{words.plural(runs, 'run')}."
    )


def failed_words(evidence: Evidence) -> str:
    """Return a sentence on the treatments with failed calls, with counts; empty without any."""
    treatments = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        failed, expected = column(frame, "failed"), column(frame, "expected")
        if np.nansum(failed) > 0:
            levels = zip(evidence.varied, key, strict=True)
            title = ", ".join(evidence.title(factor, level) for factor, level in levels)
            share = words.percent(float(np.nansum(failed) / np.nansum(expected)))
            treatments.append(
                f"{title or 'all runs'} ({words.count(float(np.nansum(failed)))}, {share})"
            )
    if not treatments:
        return ""
    rest = f" and {words.plural(len(treatments) - NAMED_MAX, 'more treatment')}"
    text = words.listed(treatments[:NAMED_MAX]) + (rest if len(treatments) > NAMED_MAX else "")
    return f"Calls failed: {text}."


def _counts_table(evidence: Evidence) -> Table:
    expected = column(evidence.usable, "expected")
    has_warm_up = bool((column(evidence.usable, "expected_after_warmup") < expected).any())
    rows = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        row: dict[str, Any] = dict(zip(evidence.varied, key, strict=True))
        row["runs"] = frame.height
        for name in COUNTS:
            finite = column(frame, name)
            finite = finite[np.isfinite(finite)]
            row[name] = int(finite.sum()) if finite.size else None
        row["check"] = sums_check(row)
        unknown_runs = frame["sent"].null_count() if "sent" in frame.columns else 0
        if 0 < unknown_runs < frame.height:
            row["check"] += f"; not known in {words.plural(unknown_runs, 'run')}"
        rows.append(row)
    columns = factor_columns(evidence)
    columns.append(Column("runs", "runs", "measured"))
    columns += [Column(n, TITLES.get(n, n.replace("_", " ")), "measured") for n in COUNTS]
    columns.append(Column("check", "sum"))
    return Table(
        "counts",
        "Messages",
        columns,
        rows,
        "Expected: receptions due, one per subscriber and message, or one per call. Received: at "
        "least once. Failed: calls that ended with an error before their timeout. Sum: received + "
        "failed + lost = expected; duplicates are counted separately."
        + (" These counts include the warm-up; latency and costs do not." if has_warm_up else ""),
    )


def sums_check(row: dict[str, Any]) -> str:
    """Return whether unique receptions, failed calls and losses add up to the expected ones.

    Campaigns recorded before failed calls were counted separately include them in the losses.
    """
    tallies = [row.get("received_unique"), row.get("lost"), row.get("expected")]
    if any(tally is None for tally in tallies):
        return "not known"
    received, lost, expected = (int(tally) for tally in tallies if tally is not None)
    excess = received + int(row.get("failed") or 0) + lost - expected
    return "holds" if excess == 0 else f"off by {excess}"


def _starts_table(evidence: Evidence) -> Table:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in evidence.usable["run"].to_list():
        for node in evidence.runs[run].get("nodes", []):
            if node.get("ready"):
                groups.setdefault((node["cell"], node["role"]), []).append(node["ready"])
    rows = []
    for (cell, role), reports in sorted(groups.items()):
        startup_s = _seconds(reports, "startup_ns")
        discovery_s = _seconds(reports, "discovery_ns")
        rows.append(
            {
                "cell": cell,
                "role": role,
                "nodes": len(reports),
                "startup": float(np.median(startup_s)) if startup_s else None,
                "startup_max": max(startup_s, default=None),
                "discovery": float(np.median(discovery_s)) if discovery_s else None,
                "discovery_max": max(discovery_s, default=None),
            }
        )
    return Table(
        "starts",
        "From process start to ready",
        [
            Column("cell", "cell"),
            Column("role", "role"),
            Column("nodes", "nodes", "measured"),
            Column("startup", "start, median", "measured", "s"),
            Column("startup_max", "slowest", "measured", "s"),
            Column("discovery", "discovery, median", "measured", "s"),
            Column("discovery_max", "slowest", "measured", "s"),
        ],
        rows,
        "Start: from the process's first statement to ready. Discovery: from the endpoint's "
        "creation to the match; “–” where the middleware does not report it.",
    )


def _seconds(reports: Sequence[dict[str, Any]], key: str) -> list[float]:
    return [report[key] / 1e9 for report in reports if report.get(key) is not None]
