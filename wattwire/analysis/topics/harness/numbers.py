"""Summarize the CPU time, the disturbance and the phases of the harness, and the cost of kits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence
from wattwire.model.derived import column
from wattwire.model.metrics import HARNESS, METRICS, metrics_in
from wattwire.stats import Interval

Machine = Mapping[str, Any]
"""The record of the machine, with facts on the cells of the campaign."""


@dataclass(frozen=True)
class Cost:
    """A metric of the harness over the valid runs that have it.

    `unit` is None for a share of all cores.
    """

    quantity: str
    unit: str | None
    median: float
    highest: float
    runs: int


@dataclass(frozen=True)
class Phase:
    """The duration (s) of a phase of a run: median, longest, and sum over all runs."""

    phase: str
    median_s: float
    highest_s: float
    total_s: float


@dataclass(frozen=True)
class RoundTrip:
    """The time (µs) that a cell's kit adds to the median round trip of a bare client.

    Both were measured in interleaved pairs of runs on this `day`.
    """

    cell: str
    added: Interval
    bare_us: float
    pairs: int
    day: str


@dataclass(frozen=True)
class RoundTrips:
    """The cells with a comparison, the sizes (B) of its messages, and the `others` without one."""

    cells: tuple[RoundTrip, ...] = ()
    sizes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stranger:
    """A cell whose client has this median round trip (µs) with the server of another cell."""

    cell: str
    latency_us: float


@dataclass(frozen=True)
class SlowServer:
    """A cell whose server is much slower for clients of other cells than for its own one.

    With the setting `tuned`, the round trip takes `tuned_us`; None if there is no such setting.
    """

    cell: str
    slower: tuple[Stranger, ...]
    own_us: float
    tuned: str
    tuned_us: float | None


@dataclass(frozen=True)
class Remark:
    """The remark that the manifest of a cell contains."""

    cell: str
    text: str


@dataclass(frozen=True)
class Harness:
    """The overhead of a measured campaign."""

    is_measured: bool = False
    costs: tuple[Cost, ...] = ()
    phases: tuple[Phase, ...] = ()
    round_trips: RoundTrips = RoundTrips()
    slow_servers: tuple[SlowServer, ...] = ()
    remarks: tuple[Remark, ...] = ()


def harness(evidence: Evidence) -> Harness:
    """Return the overhead of the runs and of the cells; nothing for imported data."""
    if evidence.imported:
        return Harness()
    machine = evidence.reader.machine
    return Harness(
        True,
        tuple(_costs(evidence)),
        tuple(_phases(evidence)),
        round_trips(machine),
        tuple(slow_servers(machine)),
        tuple(remarks(machine)),
    )


def _costs(evidence: Evidence) -> Iterator[Cost]:
    for name in metrics_in(HARNESS):
        metric = METRICS[name]
        values = column(evidence.usable, name)
        values = values[np.isfinite(values)]
        if values.size:
            median, highest = float(np.median(values)), float(values.max())
            yield Cost(metric.words, metric.unit or None, median, highest, int(values.size))


def _phases(evidence: Evidence) -> Iterator[Phase]:
    phases: dict[str, list[float]] = {}
    for run in evidence.runs.values():
        for phase, seconds in (run.get("seconds") or {}).items():
            if isinstance(seconds, (int, float)):
                phases.setdefault(phase, []).append(float(seconds))
    for phase, times_s in phases.items():
        median_s = float(np.median(times_s))
        yield Phase(phase.replace("_", " "), median_s, max(times_s), sum(times_s))


def round_trips(machine: Machine) -> RoundTrips:
    """Return the round-trip cost of kits by cell; nothing for campaigns without cells."""
    costs = machine.get("harness_costs")
    if not isinstance(costs, Mapping):
        return RoundTrips()
    measured = {cell: cost for cell, cost in sorted(costs.items()) if cost is not None}
    return RoundTrips(
        tuple(_round_trip(cell, cost) for cell, cost in measured.items()),
        tuple(sorted({f"{cost['payload_bytes']}" for cost in measured.values()})),
        tuple(sorted(set(costs) - set(measured))),
    )


def _round_trip(cell: str, cost: Mapping[str, Any]) -> RoundTrip:
    limits = (cost["added_us"], cost["added_us_low"], cost["added_us_high"])
    pairs = cost["pairs"]
    added = Interval(*limits, 0.95, pairs, "mean difference of pairs", pairs - 1)
    return RoundTrip(cell, added, cost["bare_us"], pairs, cost["day"])


def slow_servers(machine: Machine) -> Iterator[SlowServer]:
    """Yield each cell whose server is much slower for clients of other cells."""
    for cell, document in sorted((machine.get("stranger_calls") or {}).items()):
        slower = tuple(Stranger(name, us) for name, us in document["slower_us"].items())
        if slower:
            tuned, tuned_us = document["tuned"], document["tuned_us"]
            yield SlowServer(cell, slower, document["own_us"], tuned, tuned_us)


def remarks(machine: Machine) -> Iterator[Remark]:
    """Yield the remarks of the manifests of the campaign's cells."""
    for cell, text in sorted((machine.get("remarks") or {}).items()):
        yield Remark(cell, text)
