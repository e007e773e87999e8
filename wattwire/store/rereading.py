"""Compute latencies from the due time for campaigns whose summaries count from the send call.

Earlier versions started latency at the send call. The records of a run contain the due times, so
the columns of latency are computed again from these. All other columns, such as missed deadlines,
and the outcome of a run remain as measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from wattwire.model.deployment import Flow, deployment_of_run
from wattwire.model.errors import WattwireError
from wattwire.model.hosts.clocks import clocks_of_run
from wattwire.model.latencies import LatencyTally
from wattwire.model.ledger import announced, deliveries
from wattwire.model.verdict import COMPLETE
from wattwire.store.messages import Messages

COUNTS = ("latency_samples", "expected_after_warmup", "failed_after_warmup", "lost_after_warmup")
_SEEN: dict[tuple[Path, str], dict[str, float | None] | None] = {}
"""Columns of the attempts that were read again, because one command reads a campaign repeatedly."""


@dataclass(frozen=True)
class Reread:
    """Numbers of attempts: read again, and without readable records."""

    reread: int
    unreadable: int


class RunReader(Protocol):
    """The part of a campaign's reader that gives the records of its runs."""

    @property
    def path(self) -> Path: ...
    def run(self, run_id: str) -> dict[str, Any]: ...
    def recorded(self, run_id: str) -> Messages: ...


def from_due_time(reader: RunReader, summary: pl.DataFrame) -> tuple[pl.DataFrame, Reread | None]:
    """Return the summary with latencies from the due time, and what was read again, if anything."""
    if not {"window_s", "latency_p50_us"} <= set(summary.columns):
        return summary, None
    is_old = summary["window_s"].is_not_null()
    if "rate_window_s" in summary.columns:
        is_old &= summary["rate_window_s"].is_null()
    names = summary.select(pl.format("{}-{}", "run", "attempt")).to_series().to_list()
    columns = [
        _columns(reader, name) if old else {} for name, old in zip(names, is_old, strict=True)
    ]
    if not is_old.any():
        return summary, None
    known = dict.fromkeys(name for of_run in columns if of_run for name in of_run)
    rows = [
        {name: (of_run or {}).get(name, row.get(name)) for name in known}
        for of_run, row in zip(columns, summary.iter_rows(named=True), strict=True)
    ]
    schema = {name: pl.Float64 for name in known}
    reread = Reread(sum(map(bool, columns)), sum(of_run is None for of_run in columns))
    return summary.with_columns(pl.DataFrame(rows, schema=schema).get_columns()), reread


def _columns(reader: RunReader, name: str) -> dict[str, float | None] | None:
    """Return the columns of latency of an attempt; None without readable records."""
    key = reader.path, name
    if key not in _SEEN:
        try:
            document = reader.run(name)
            messages = reader.recorded(name).on_one_clock(clocks_of_run(document))
            _SEEN[key] = _latencies(messages, document)
        except WattwireError:
            _SEEN[key] = None
    return _SEEN[key]


def _latencies(messages: Messages, document: Mapping[str, Any]) -> dict[str, float | None] | None:
    if not messages.count:
        return None
    deployment = deployment_of_run(document)
    flows, known_senders = deployment.flows, announced(messages.origins, deployment.flows)
    whole = LatencyTally()
    of_flow = {
        flow.sender: LatencyTally() for flow in flows if flow.sender in deployment.flow_names
    }
    for part in messages.parts():
        expected = deliveries(part, flows, known_senders)
        whole.add(expected)
        for sender, tally in of_flow.items():
            tally.add(expected.filter(pl.col("sender") == sender))
    unsent = _unsent(document, flows)
    columns = _with_unsent(whole, sum(unsent.values()))
    for sender, tally in of_flow.items():
        suffix = f".flow.{deployment.flow_names[sender]}"
        own = _with_unsent(tally, unsent.get(sender, 0))
        columns |= {f"{name}{suffix}": value for name, value in own.items()}
    return columns


def _with_unsent(tally: LatencyTally, unsent: int) -> dict[str, float | None]:
    """Return the columns of latency without the counts, which are already in the summary."""
    columns = tally.summary(scheduled=tally.expected + unsent)
    return {name: value for name, value in columns.items() if name not in COUNTS}


def _unsent(document: Mapping[str, Any], flows: Sequence[Flow]) -> dict[int, int]:
    """Return sender → deliveries of its messages that were due in an open loop and never sent."""
    levels = {**(document.get("levels") or {}), **(document.get("treatment") or {})}
    has_ended = document.get("outcome") not in COMPLETE
    if levels.get("loop") == "closed" or has_ended:
        return {}
    lines = {node["node"]: node.get("sent") or {} for node in document.get("nodes", [])}
    return {
        flow.sender: max(0, line["scheduled"] - line["sent"]) * flow.expected_per_message
        for flow in flows
        if (line := lines.get(flow.sender))
    }
