"""Show the costs of each host of a rig."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import column
from wattwire.report.parts import Column, Fold, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "costs_by_host",
    {
        "title": "Costs of each host",
        "note": (
            "The costs of a host are those of its processes in this row. Each value is the "
            "geometric mean over the valid runs of the row. In each run, the CPU time and the "
            "memory of all hosts add up to those of the treatment. Bytes are counted at the "
            "interfaces of each host, so a message counts on its sender's and on its receiver's "
            "host. The power is that of a machine in the window. Only one host of a machine has "
            "it, even if several hosts share this machine."
        ),
    },
)

COSTS = (
    Column("cpu_us_per_message", "CPU per message sent", "measured", "µs"),
    Column("memory_kib_total", "memory", "measured", "KiB", 4),
    Column("wire_bytes_per_message", "bytes per message sent", "measured", "B"),
    Column("power_window_w", "power of the machine", "measured", "W"),
)
"""Costs of a run that have a column for each host."""


def fold(evidence: Evidence) -> Fold | None:
    """Return the fold with a row for each host of each treatment, or None for a single host."""
    hosts = dict.fromkeys(host for run in evidence.runs.values() for host in run.get("hosts", {}))
    columns = [cost for cost in COSTS if _has_values(evidence.usable, cost.key, hosts)]
    if len(hosts) < 2 or not columns:
        return None
    rows = [
        {
            **dict(zip(evidence.varied, levels, strict=True)),
            "host": host,
            "processes": processes,
            "runs": len(runs),
            **{cost.key: _mean(_values(frame, cost.key, host)) for cost in columns},
        }
        for levels, frame in by_treatment(evidence, evidence.usable).items()
        for host in hosts
        if (runs := _runs_with(evidence, frame, host))
        and (processes := _processes(evidence.runs[runs[0]], host))
    ]
    heads = [Column("host", "host"), Column("processes", "processes")]
    runs_column = Column("runs", "runs", "measured")
    table = Table(
        "costs-by-host",
        PHRASES("title"),
        [*factor_columns(evidence), *heads, runs_column, *columns],
        rows,
        PHRASES("note"),
    )
    return Fold(PHRASES("title"), [table])


def _runs_with(evidence: Evidence, frame: pl.DataFrame, host: str) -> list[str]:
    return [run for run in frame["run"].to_list() if host in evidence.runs[run].get("hosts", {})]


def _processes(document: Mapping[str, Any], host: str) -> str:
    """Return the roles of the nodes and the names of the services on a host."""
    roles = {node["process"]: node["role"] for node in document["nodes"]}
    names = [
        roles.get(process["name"], process["name"])
        for process in document["deployment"]["processes"]
        if process["host"] == host
    ]
    return ", ".join(dict.fromkeys(names))


def _values(frame: pl.DataFrame, cost: str, host: str) -> NDArray[np.float64]:
    return column(frame, f"{cost}.on.{host}")


def _has_values(frame: pl.DataFrame, cost: str, hosts: Iterable[str]) -> bool:
    return any(np.isfinite(_values(frame, cost, host)).any() for host in hosts)


def _mean(values: NDArray[np.float64]) -> float | None:
    positive = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.mean(np.log(positive)))) if positive.size else None
