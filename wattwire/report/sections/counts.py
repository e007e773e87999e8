"""Messages counted: sent, received, failed, lost, late; how nodes started and matched."""

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
"""Treatments with failed calls that a sentence names one by one."""


def section(evidence: Evidence) -> Section:
    """The page's part about losses and starts."""
    part = Section("counts", "Counts, losses, starts")
    if evidence.usable.height == 0:
        part.parts.append(Text("No usable run to count in.", "warning"))
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
    total, gone = np.nansum(expected), np.nansum(lost)
    with_loss = int((lost > 0).sum())
    unknown = frame["sent"].null_count() if "sent" in frame.columns else 0
    if unknown == frame.height:
        return f"In none of {words.plural(unknown, 'run')} is it known what was sent: {UNKNOWN}."
    return _of_known(total, gone, with_loss, frame.height) + (
        f" What was sent is not known in {words.plural(unknown, 'run')}: {UNKNOWN}."
        if unknown
        else ""
    )


def _of_known(total: float, gone: float, with_loss: int, runs: int) -> str:
    if gone == 0:
        return f"None of {words.count(float(total))} expected receptions was lost."
    return (
        f"{words.count(float(gone))} of {words.count(float(total))} expected receptions were lost "
        f"({words.percent(float(gone / total))}), in {with_loss} of "
        f"{words.plural(runs, 'run')}."
    )


def failed_words(evidence: Evidence) -> str:
    """Which treatments had failed calls, and how many; empty where none had."""
    told = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        failed, expected = column(frame, "failed"), column(frame, "expected")
        if np.nansum(failed) > 0:
            levels = zip(evidence.varied, key, strict=True)
            name = ", ".join(evidence.title(factor, level) for factor, level in levels)
            share = words.percent(float(np.nansum(failed) / np.nansum(expected)))
            told.append(f"{name or 'all runs'} ({words.count(float(np.nansum(failed)))}, {share})")
    if not told:
        return ""
    more = f" and {words.plural(len(told) - NAMED_MAX, 'more treatment')}"
    named = words.listed(told[:NAMED_MAX]) + (more if len(told) > NAMED_MAX else "")
    return f"Calls failed: {named}."


def _counts_table(evidence: Evidence) -> Table:
    expected = column(evidence.usable, "expected")
    warm_up = bool((column(evidence.usable, "expected_after_warmup") < expected).any())
    rows = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        row: dict[str, Any] = dict(zip(evidence.varied, key, strict=True))
        row["runs"] = frame.height
        for name in COUNTS:
            known = column(frame, name)
            known = known[np.isfinite(known)]
            row[name] = int(known.sum()) if known.size else None
        row["check"] = sums_check(row)
        unknown = frame["sent"].null_count() if "sent" in frame.columns else 0
        if 0 < unknown < frame.height:
            row["check"] += f"; not known in {words.plural(unknown, 'run')}"
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
        "Expected: receptions due, one per subscriber and message, or one per call. Received: once "
        "or more. Failed: calls that ended with an error before their timeout. Sum: received + "
        "failed + lost = expected; duplicates stand apart."
        + (" These counts include the warm-up; latency and costs do not." if warm_up else ""),
    )


def sums_check(row: dict[str, Any]) -> str:
    """Whether unique receptions, failed calls and losses make up what was expected.

    Campaigns from before failed calls were told apart have them among the lost.
    """
    parts = [row.get("received_unique"), row.get("lost"), row.get("expected")]
    if any(part is None for part in parts):
        return "not known"
    got, lost, expected = (int(part) for part in parts if part is not None)
    over = got + int(row.get("failed") or 0) + lost - expected
    return "holds" if over == 0 else f"off by {over}"


def _starts_table(evidence: Evidence) -> Table:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in evidence.usable["run"].to_list():
        for node in evidence.runs[run].get("nodes", []):
            if node.get("ready"):
                groups.setdefault((node["cell"], node["role"]), []).append(node["ready"])
    rows = []
    for (cell, role), ready in sorted(groups.items()):
        startup = _seconds(ready, "startup_ns")
        discovery = _seconds(ready, "discovery_ns")
        rows.append(
            {
                "cell": cell,
                "role": role,
                "nodes": len(ready),
                "startup": float(np.median(startup)) if startup else None,
                "startup_max": max(startup, default=None),
                "discovery": float(np.median(discovery)) if discovery else None,
                "discovery_max": max(discovery, default=None),
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
        "creation to the match; “–” where the middleware cannot tell.",
    )


def _seconds(ready: Sequence[dict[str, Any]], key: str) -> list[float]:
    return [one[key] / 1e9 for one in ready if one.get(key) is not None]
