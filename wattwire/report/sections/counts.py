"""Build the section on message counts, losses and node starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.metrics import COUNTS, metrics_in
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.tables import rates, service_counters
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.failed_calls import sentence
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "counts",
    {
        "title": "Counts, losses, starts",
        "no_usable_run": "There are no counts, because no run is valid.",
        "none_lost": "None of {expected:count} expected deliveries was lost.",
        "lost": (
            "Lost: {lost:count} of {expected:count} expected deliveries ({share:percent}), in "
            "{runs_with_loss} of {runs:plural run}."
        ),
        "some_unknown": (
            "The number of messages sent is unknown in {runs:plural run}, because a sender left "
            "no records."
        ),
        "all_unknown": (
            "The number of messages sent is unknown in all runs ({runs:count}), because a sender "
            "left no records."
        ),
        "what_failed_means": (
            "A failed call ended with an error before its timeout. In latency percentiles, a "
            "failed call counts as +∞, like a lost call."
        ),
        "table": "Messages",
        "note": (
            "“Expected”: one delivery for each subscriber of each message, or one for each call. "
            "“Received”: deliveries that arrived at least once. “Failed”: calls that ended with an "
            "error before their timeout. “Undelivered”: messages that were still in the queue of a "
            "saturated hop when the receivers' patience (linger_ms) ended. Received + failed + "
            "lost + undelivered = expected; duplicates are counted separately.{warm_up}"
        ),
        "note_warm_up": " These counts include the warm-up; latency and costs do not.",
        "starts": "Time from process start to READY",
        "starts_note": (
            "“Start”: the time from the process's first statement to READY. “Discovery”: the time "
            "from the creation of the endpoint to the match with its peer; “–” if the middleware "
            "does not report it."
        ),
    },
)

TITLES = {"received_unique": "received"}


def section(evidence: Evidence) -> Section:
    """Return the section on message counts, losses and node starts."""
    part = Section("counts", PHRASES("title"))
    if evidence.usable.height == 0:
        part.has_no_data = True
        part.parts.append(Text(PHRASES("no_usable_run"), "warning"))
        return part
    part.parts.append(Text(_loss_words(evidence)))
    failed = sentence(evidence)
    if failed:
        part.parts.append(Text(joined([failed, PHRASES("what_failed_means")]), "warning"))
    part.parts.append(_counts_table(evidence))
    part.parts.append(rates.table(evidence))
    part.parts.append(_starts_table(evidence))
    services = service_counters.fold(evidence)
    part.parts += [services] if services else []
    return part


def _loss_words(evidence: Evidence) -> Phrase:
    frame = evidence.usable
    expected, lost = column(frame, "expected"), column(frame, "lost")
    due_sum, lost_sum = np.nansum(expected), np.nansum(lost)
    runs_with_loss = int((lost > 0).sum())
    unknown_runs = frame["sent"].null_count() if "sent" in frame.columns else 0
    if unknown_runs == frame.height:
        return PHRASES("all_unknown", runs=unknown_runs)
    texts = [_loss_sentence(due_sum, lost_sum, runs_with_loss, frame.height)]
    texts += [PHRASES("some_unknown", runs=unknown_runs)] if unknown_runs else []
    return joined(texts)


def _loss_sentence(due: float, lost: float, runs_with_loss: int, runs: int) -> Phrase:
    if lost == 0:
        return PHRASES("none_lost", expected=float(due))
    return PHRASES(
        "lost",
        lost=float(lost),
        expected=float(due),
        share=float(lost / due),
        runs_with_loss=runs_with_loss,
        runs=runs,
    )


def _counts_table(evidence: Evidence) -> Table:
    expected = column(evidence.usable, "expected")
    has_warm_up = bool((column(evidence.usable, "expected_after_warmup") < expected).any())
    rows, names = [], metrics_in(COUNTS)
    for key, frame in by_treatment(evidence, evidence.usable).items():
        row: dict[str, Any] = dict(zip(evidence.varied, key, strict=True))
        row["runs"] = frame.height
        for name in names:
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
    columns += [Column(n, TITLES.get(n, n.replace("_", " ")), "measured") for n in names]
    columns.append(Column("check", "sum"))
    return Table(
        "counts",
        PHRASES("table"),
        columns,
        rows,
        PHRASES("note", warm_up=PHRASES("note_warm_up") if has_warm_up else ""),
    )


def sums_check(row: dict[str, Any]) -> str:
    """Return "holds" if received, failed, lost and undelivered sum to the expected deliveries.

    Otherwise, the text gives the difference or "not known".
    """
    tallies = [row.get("received_unique"), row.get("lost"), row.get("expected")]
    if any(tally is None for tally in tallies):
        return "not known"
    received, lost, expected = (int(tally) for tally in tallies if tally is not None)
    others = int(row.get("failed") or 0) + int(row.get("undelivered") or 0)
    excess = received + others + lost - expected
    return "correct" if excess == 0 else f"off by {excess}"


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
        PHRASES("starts"),
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
        PHRASES("starts_note"),
    )


def _seconds(reports: Sequence[dict[str, Any]], key: str) -> list[float]:
    return [report[key] / 1e9 for report in reports if report.get(key) is not None]


PART = PagePart(130, lambda data: [section(data.evidence)], measured_only=True, of_messages=True)
