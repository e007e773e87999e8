"""Compute the energy of each run from a trace that was put in later, with a bound of its error.

How: a load of known times before the first and after the last run gives the offset of the trace's
clock twice, and thus its rate. The energy in a window has a bound, whose terms are added linearly:
the range of the power at each end of the window for as long as its time is unknown, half a step of
the power, and the class that the vendor states.
What it misses: an instrument that averages over more than its period is later than it seems, and
the offset contains this delay. The power of the load must follow the load at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence
from wattwire.model.outside_meters import WINDOWS_PER_READING
from wattwire.stats import Interval, NotComputable
from wattwire.stats.results import FloatArray
from wattwire.stats.series.alignment import (
    Alignment,
    Load,
    Trace,
    aligned,
    bounded_energy,
)

NS_PER_S = 1e9
LOADS_MIN = 2
WITHOUT_LOADS = (
    "the campaign has no load before and after its runs, by which a trace could be aligned; "
    "measure again with `wattwire run STUDY --align`"
)


@dataclass(frozen=True)
class TraceEnergy:
    """The energy (J) of a run's window from the trace, and the terms of the bound of its error.

    `power_w` is the mean power (W). Without an energy, `reason` states why.
    """

    run: str
    window_s: float
    joules: float | None = None
    power_w: float | None = None
    edges_j: float | None = None
    resolution_j: float | None = None
    class_j: float | None = None
    bound_j: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class TraceClock:
    """The offset (s) of the trace's clock at a load, from the first load of the campaign."""

    load: str
    offset_s: Interval
    half_width_s: float


@dataclass(frozen=True)
class PowerTrace:
    """The energy of each valid run from the trace in `file`, and the relation of its clock.

    Without an alignment, `reason` states why, and there are no runs.
    """

    file: str = ""
    reason: str = ""
    period_s: float = 0.0
    rate_ppm: float = 0.0
    clocks: tuple[TraceClock, ...] = ()
    runs: tuple[TraceEnergy, ...] = ()


def clock_of(
    loads: Sequence[Mapping[str, Any]] | None, times_s: FloatArray, powers_w: FloatArray
) -> tuple[Alignment, Trace] | NotComputable:
    """Return the clock of a trace from the stored loads of its campaign, and the trace.

    Our times are in s since the first load began.
    """
    if loads is None or len(loads) < LOADS_MIN:
        return NotComputable(WITHOUT_LOADS)
    first, last = loads[0], loads[-1]
    if first["boot_id"] != last["boot_id"]:
        return NotComputable(
            "the machine was booted again between the first and the last run, so that no clock "
            "relates both loads"
        )
    origin_ns = first["boundaries_ns"][0]
    trace = Trace(times_s - times_s[0], powers_w)
    alignment = aligned(trace, _load(first, origin_ns), _load(last, origin_ns))
    return alignment if isinstance(alignment, NotComputable) else (alignment, trace)


def _load(document: Mapping[str, Any], origin_ns: int) -> Load:
    since_ns = np.array(document["boundaries_ns"], np.int64) - origin_ns
    return Load(since_ns / NS_PER_S, np.array(document["levels"], np.float64))


def power_trace(evidence: Evidence) -> PowerTrace:
    """Return the energy of the valid runs from the campaign's trace; empty without a trace."""
    stored = None if evidence.imported else evidence.reader.trace()  # type: ignore[attr-defined]
    if stored is None:
        return PowerTrace()
    readings, about = stored
    loads = evidence.reader.alignment_loads()  # type: ignore[attr-defined]
    times_s, powers_w = (readings[name].to_numpy() for name in ("time_s", "power_w"))
    clock = clock_of(loads, times_s, powers_w)
    if isinstance(clock, NotComputable):
        return PowerTrace(about["file"], clock.reason)
    alignment, trace = clock
    clocks = tuple(
        TraceClock(name, offset, (offset.high - offset.low) / 2)
        for name, offset in (("first", alignment.first), ("last", alignment.last))
    )
    runs = tuple(_energies(evidence, loads[0]["boundaries_ns"][0], alignment, trace, about))
    rate_ppm = alignment.relation.rate * 1e6
    return PowerTrace(about["file"], "", trace.period_s, rate_ppm, clocks, runs)


def _energies(
    evidence: Evidence, origin_ns: int, alignment: Alignment, trace: Trace, about: Mapping[str, Any]
) -> Iterator[TraceEnergy]:
    ends_s = alignment.relation.our_time(trace.times_s)
    terms = (float(about["share"]), float(about["watts"]))
    for run in evidence.usable["run"].to_list():
        window = evidence.runs[run]["window"]
        begin_ns = window.get("cost_begin_ns", window["start_ns"])
        begin_s, end_s = ((at - origin_ns) / NS_PER_S for at in (begin_ns, window["end_ns"]))
        window_s, least_s = end_s - begin_s, WINDOWS_PER_READING * trace.period_s
        if window_s < least_s:
            reason = f"too short for this meter: the window has less than {least_s:g} s"
            yield TraceEnergy(run, window_s, reason=reason)
            continue
        energy = bounded_energy(
            ends_s, trace.powers_w, (begin_s, end_s), trace.period_s,
            alignment.relation.half_width_s, trace.resolution_w, terms,
        )  # fmt: skip
        if isinstance(energy, NotComputable):
            yield TraceEnergy(run, window_s, reason=energy.reason)
            continue
        parts_j = (energy.edges_j, energy.resolution_j, energy.class_j, energy.bound_j)
        yield TraceEnergy(run, window_s, energy.joules, energy.joules / window_s, *parts_j)
