"""Compute the energy of each run from a trace that was put in later, with a bound of its error.

How: see `wattwire.analysis.aligned_energy`. The zero of the trace's clock may be anywhere, so both
loads are searched in the whole trace.
What it misses: an instrument that averages over more than its period is later than it seems, and
the offset contains this delay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.aligned_energy import (
    AlignedReadings,
    LoadOffset,
    WindowEnergy,
    enclosing_loads,
    offsets_of,
)
from wattwire.analysis.dataset import Evidence
from wattwire.model.outside_meters import AccuracyClass
from wattwire.stats import NotComputable
from wattwire.stats.results import FloatArray
from wattwire.stats.series.alignment import Trace, aligned


@dataclass(frozen=True)
class PowerTrace:
    """The energy of each valid run from the trace in `file`, and the relation of its clock.

    Without an alignment, `reason` states why, and there are no runs.
    """

    file: str = ""
    reason: str = ""
    period_s: float = 0.0
    rate_ppm: float = 0.0
    clocks: tuple[LoadOffset, ...] = ()
    runs: tuple[WindowEnergy, ...] = ()


def clock_of(
    loads: Sequence[Mapping[str, Any]] | None,
    times_s: FloatArray,
    powers_w: FloatArray,
    about: Mapping[str, Any],
) -> AlignedReadings | NotComputable:
    """Return a trace with its clock, from the stored loads of its campaign.

    `about` has its file and the class of the instrument (share and watts).
    """
    enclosing = enclosing_loads(loads)
    if isinstance(enclosing, NotComputable):
        return enclosing
    first, last, origin_ns = enclosing
    trace = Trace(times_s - times_s[0], powers_w)
    alignment = aligned(trace, first, last)
    if isinstance(alignment, NotComputable):
        return alignment
    accuracy = AccuracyClass(float(about["share"]), float(about["watts"]))
    return AlignedReadings(
        str(about["file"]), trace, alignment, origin_ns, trace.period_s, trace.resolution_w,
        accuracy,
    )  # fmt: skip


def power_trace(evidence: Evidence) -> PowerTrace:
    """Return the energy of the valid runs from the campaign's trace; empty without a trace."""
    stored = None if evidence.imported else evidence.reader.trace()  # type: ignore[attr-defined]
    if stored is None:
        return PowerTrace()
    readings, about = stored
    loads = evidence.reader.alignment_loads()  # type: ignore[attr-defined]
    times_s, powers_w = (readings[name].to_numpy() for name in ("time_s", "power_w"))
    trace = clock_of(loads, times_s, powers_w, about)
    if isinstance(trace, NotComputable):
        return PowerTrace(about["file"], trace.reason)
    rate_ppm, clocks = trace.alignment.relation.rate * 1e6, offsets_of(trace.alignment, "")
    runs = evidence.usable["run"].to_list()
    energies = tuple(trace.energy(run, evidence.runs[run]["window"]) for run in runs)
    return PowerTrace(trace.source, "", trace.window_s, rate_ppm, clocks, energies)
