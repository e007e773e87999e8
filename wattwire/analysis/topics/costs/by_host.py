"""Compute the costs of each host of a rig."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import FloatArray, column, known_geometric_mean

COSTS = (
    "cpu_us_per_message", "memory_kib_total", "wire_bytes_per_message", "power_window_w",
)  # fmt: skip
"""Costs of a run that have a column for each host."""


@dataclass(frozen=True)
class HostCosts:
    """Costs of a host's processes in a treatment, as geometric means over its runs.

    `processes` has the roles of the nodes and the names of the services. A cost is None if no run
    has it.
    """

    treatment: tuple[str, ...]
    host: str
    processes: tuple[str, ...]
    runs: int
    cpu_us_per_message: float | None = None
    memory_kib_total: float | None = None
    wire_bytes_per_message: float | None = None
    power_window_w: float | None = None


@dataclass(frozen=True)
class ByHost:
    """The costs of all hosts. `measured` names the costs that any host has."""

    measured: tuple[str, ...] = ()
    rows: tuple[HostCosts, ...] = ()


def by_host(evidence: Evidence) -> ByHost:
    """Return the costs of each host of each treatment; nothing for a single host."""
    hosts = dict.fromkeys(host for run in evidence.runs.values() for host in run.get("hosts", {}))
    measured = tuple(cost for cost in COSTS if _has_values(evidence.usable, cost, hosts))
    if len(hosts) < 2 or not measured:
        return ByHost()
    return ByHost(measured, tuple(_rows(evidence, hosts, measured)))


def _rows(evidence: Evidence, hosts: Iterable[str], measured: Sequence[str]) -> Iterator[HostCosts]:
    for treatment, frame in by_treatment(evidence, evidence.usable).items():
        for host in hosts:
            runs = _runs_with(evidence, frame, host)
            processes = _processes(evidence.runs[runs[0]], host) if runs else ()
            if processes:
                means = {
                    cost: known_geometric_mean(_values(frame, cost, host)) for cost in measured
                }
                yield HostCosts(treatment, host, processes, len(runs), **means)


def _runs_with(evidence: Evidence, frame: pl.DataFrame, host: str) -> list[str]:
    return [run for run in frame["run"].to_list() if host in evidence.runs[run].get("hosts", {})]


def _processes(document: Mapping[str, Any], host: str) -> tuple[str, ...]:
    roles = {node["process"]: node["role"] for node in document["nodes"]}
    names = [
        roles.get(process["name"], process["name"])
        for process in document["deployment"]["processes"]
        if process["host"] == host
    ]
    return tuple(dict.fromkeys(names))


def _values(frame: pl.DataFrame, cost: str, host: str) -> FloatArray:
    return column(frame, f"{cost}.on.{host}")


def _has_values(frame: pl.DataFrame, cost: str, hosts: Iterable[str]) -> bool:
    return any(np.isfinite(_values(frame, cost, host)).any() for host in hosts)
