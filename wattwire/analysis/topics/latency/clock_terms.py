"""Summarise the relations of hosts' clocks, and what remains of them in differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.topics.latency.percentiles import SHARES, Percentiles
from wattwire.model.deployment import deployment_of_run
from wattwire.model.hosts.clocks import ClockRelation, relations_of_run

SLEW_MIN = {"rate_ppm": 0.01, "tick_us": 1, "offset_ns": 1}
"""Smallest changes of the kernel's correction of the clock (adjtimex) that are named a slew."""


@dataclass(frozen=True)
class HostClock:
    """A host whose clock differs from the controller's, over the valid runs.

    `band_us` is the largest error, `round_trip_us` the shortest round trip of all exchanges, and
    `unseen_ppm` the largest change of the rate in the middle of a run without a change that they
    cannot show (None if there is no such run, or if one has too few exchanges to know). In
    `changed` runs, the rate changed, by up to `change_ppm`; in `slewed` runs, the kernel of the
    host or of the controller changed its correction of the clock.
    """

    host: str
    band_us: float
    round_trip_us: float = 0.0
    unseen_ppm: float | None = None
    changed: int = 0
    change_ppm: float = 0.0
    slewed: int = 0


@dataclass(frozen=True)
class Clocks:
    """The groups of hosts with one clock, and the hosts whose latencies are corrected."""

    shared: tuple[tuple[str, ...], ...] = ()
    corrected: tuple[HostClock, ...] = ()


@dataclass(frozen=True)
class ClockDifference:
    """The difference of a treatment's median latency from the first treatment's, in µs.

    The asymmetry that both have cancels. `drift_us` and `load_us` estimate what remains: the sum of
    the departures of both, and half of the differences, summed over the clocks, of their median
    round trips during the runs.
    """

    treatment: tuple[str, ...]
    difference_us: float
    drift_us: float
    load_us: float


def host_clocks(evidence: Evidence) -> Clocks:
    """Return the clocks of all hosts of the valid runs."""
    hosts_of_clock: dict[str, set[str]] = {}
    known: dict[str, list[tuple[str, ClockRelation]]] = {}
    for run in evidence.usable["run"].to_list():
        for host, relation in relations_of_run(evidence.runs[run]).items():
            hosts_of_clock.setdefault(relation.clock, set()).add(host)
            if not relation.is_own:
                known.setdefault(host, []).append((run, relation))
    return Clocks(
        tuple(tuple(sorted(hosts)) for hosts in hosts_of_clock.values() if len(hosts) > 1),
        tuple(_host_clock(evidence, host, known[host]) for host in sorted(known)),
    )


def _host_clock(
    evidence: Evidence, host: str, runs: Sequence[tuple[str, ClockRelation]]
) -> HostClock:
    relations = [relation for _, relation in runs]
    unseen = [relation.unseen_ppm for relation in relations if not relation.changes]
    known = [ppm for ppm in unseen if ppm is not None]
    return HostClock(
        host,
        max(relation.band_ns for relation in relations) / 1_000,
        min(relation.round_trip_ns for relation in relations) / 1_000,
        max(known) if known and len(known) == len(unseen) else None,
        sum(relation.changes > 0 for relation in relations),
        max(map(_change_ppm, relations)),
        sum(_is_slewed(evidence, run, host) for run, _ in runs),
    )


def _change_ppm(relation: ClockRelation) -> float:
    """Return the difference of the largest and the smallest rate of a run (ppm)."""
    rates = relation.rates
    return float(max(rates) - min(rates)) * 1e6 if rates else 0.0


def _is_slewed(evidence: Evidence, run: str, host: str) -> bool:
    """Return whether the kernel of the host, or of one with the controller's clock, slewed it."""
    document = evidence.runs[run]
    own = [name for name, relation in relations_of_run(document).items() if relation.is_own]
    return any(_adjusts(document["hosts"][name]) for name in (host, *own))


def _adjusts(host: Mapping[str, Any]) -> bool:
    """Return whether the kernel of a host changed its correction of the clock in the run."""
    adjustments = host.get("clock_adjustments") or {}
    begin, end = (adjustments.get(name) or {} for name in ("begin", "end"))
    known = {name for name in SLEW_MIN if None not in (begin.get(name), end.get(name))}
    return any(abs(end[name] - begin[name]) >= SLEW_MIN[name] for name in known)


def clock_differences(
    evidence: Evidence, rows: Sequence[Percentiles]
) -> tuple[ClockDifference, ...]:
    """Return the differences of medians from the first treatment, with their terms.

    There are none without a treatment whose latencies depend on several clocks, nor of treatments
    whose exchanges are too few.
    """
    if not any(row.band_us for row in rows):
        return ()
    terms = dict(_terms(evidence))
    medians = {row.treatment: row.percentiles[SHARES.index(0.5)] for row in rows}
    known = {
        treatment: median.estimate
        for treatment, median in medians.items()
        if isinstance(median, stats.Interval) and treatment in terms
    }
    if not known:
        return ()
    first, *others = known
    return tuple(
        ClockDifference(
            treatment,
            known[treatment] - known[first],
            terms[treatment][0] + terms[first][0],
            _load_us(terms[treatment][1], terms[first][1]),
        )
        for treatment in others
    )


def _load_us(by_host: Mapping[str, float], by_host_before: Mapping[str, float]) -> float:
    """Return half of the differences of round trips, as a sum over hosts."""
    hosts = by_host.keys() | by_host_before.keys()
    return sum(abs(by_host.get(host, 0.0) - by_host_before.get(host, 0.0)) for host in hosts) / 2


def _terms(evidence: Evidence) -> Iterator[tuple[tuple[str, ...], tuple[float, dict[str, float]]]]:
    """Yield the departure (µs), a sum over clocks, and host → round trip (µs) of treatments.

    They are medians over runs, of the clocks that the flows' one-way latencies use.
    """
    for treatment, frame in by_treatment(evidence, evidence.usable).items():
        departures_us: list[float] = []
        round_trips_us: dict[str, list[float]] = {}
        for run in frame["run"].to_list():
            used = _clocks_of_flows(evidence.runs[run])
            departures_ns = [relation.departure_ns for relation in used.values()]
            during_ns = {host: relation.run_round_trip_ns for host, relation in used.items()}
            if None in departures_ns or None in during_ns.values():
                continue
            departures_us.append(sum(ns or 0 for ns in departures_ns) / 1_000)
            for host, ns in during_ns.items():
                round_trips_us.setdefault(host, []).append((ns or 0) / 1_000)
        if departures_us:
            medians = {host: float(np.median(values)) for host, values in round_trips_us.items()}
            yield treatment, (float(np.median(departures_us)), medians)


def _clocks_of_flows(run: Mapping[str, Any]) -> dict[str, ClockRelation]:
    """Return host → relation of each clock that one-way latencies of the run's flows use.

    The first host in the order of names stands for a clock. The controller's clock needs none.
    """
    relations, deployment = relations_of_run(run), deployment_of_run(run)
    flows = [flow for flow in deployment.flows if not flow.result]
    nodes = {node for flow in flows for node in (flow.sender, *flow.relays, *flow.receivers)}
    hosts = sorted({deployment.host_of(n) for n in deployment.nodes if n.node in nodes})
    host_of_clock: dict[str, str] = {}
    for host in hosts:
        if host in relations and not relations[host].is_own:
            host_of_clock.setdefault(relations[host].clock, host)
    return {host: relations[host] for host in host_of_clock.values()}
