"""Summarise the relations of hosts' clocks, and what remains of them in differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.topics.latency.percentiles import SHARES, Percentiles
from wattwire.model.hosts.clocks import ClockRelation, relations_of_run

SLEW_PPM_MIN = 0.01
"""Smallest change of the kernel's correction of the rate that is named a slew."""


@dataclass(frozen=True)
class HostClock:
    """A host whose clock differs from the controller's, over the valid runs.

    `band_us` is the largest error, `round_trip_us` the shortest round trip of all exchanges, and
    `unseen_ppm` the largest change of the rate in the middle of a run that they cannot show (None
    if a run has too few exchanges to know). In `changed` runs, the rate changed, by up to
    `change_ppm`; in `slewed` runs, the kernel changed its correction of the rate.
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
    the departures of both, and half of the difference of their shortest round trips.
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
    unseen = [relation.unseen_ppm for relation in relations if relation.unseen_ppm is not None]
    return HostClock(
        host,
        max(relation.band_ns for relation in relations) / 1_000,
        min(relation.round_trip_ns for relation in relations) / 1_000,
        max(unseen) if len(unseen) == len(relations) else None,
        sum(relation.changes > 0 for relation in relations),
        max(map(_change_ppm, relations)),
        sum(_is_slewed(evidence, run, host) for run, _ in runs),
    )


def _change_ppm(relation: ClockRelation) -> float:
    """Return the difference of the largest and the smallest rate of a run (ppm)."""
    rates = relation.rates
    return float(max(rates) - min(rates)) * 1e6 if rates else 0.0


def _is_slewed(evidence: Evidence, run: str, host: str) -> bool:
    adjustments = evidence.runs[run]["hosts"][host].get("clock_adjustments") or {}
    rates_ppm = [(adjustments.get(end) or {}).get("rate_ppm") for end in ("begin", "end")]
    known = [rate_ppm for rate_ppm in rates_ppm if rate_ppm is not None]
    return len(known) == 2 and abs(known[1] - known[0]) >= SLEW_PPM_MIN


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
            abs(terms[treatment][1] - terms[first][1]) / 2,
        )
        for treatment in others
    )


def _terms(evidence: Evidence) -> Iterator[tuple[tuple[str, ...], tuple[float, float]]]:
    """Yield departure and shortest round trip of treatments, both sums over clocks (µs).

    They are the median over runs of the departure, and of the shortest round trip.
    """
    for treatment, frame in by_treatment(evidence, evidence.usable).items():
        of_runs = []
        for run in frame["run"].to_list():
            relations = relations_of_run(evidence.runs[run])
            by_clock = {relation.clock: relation for relation in relations.values()}
            measured = [relation for relation in by_clock.values() if not relation.is_own]
            if all(relation.departure_ns is not None for relation in measured):
                departure_ns = sum(relation.departure_ns or 0 for relation in measured)
                round_trip_ns = sum(relation.round_trip_ns for relation in measured)
                of_runs.append((departure_ns / 1_000, round_trip_ns / 1_000))
        if of_runs:
            departure_us, round_trip_us = np.median(np.array(of_runs), axis=0)
            yield treatment, (float(departure_us), float(round_trip_us))
