"""Relate the clocks of meters outside the machine to ours, and compute the energy of each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.aligned_energy import (
    NS_PER_S,
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
from wattwire.stats.series.alignment import Trace, aligned_near

MICRO = 1e6
NO_READINGS: Mapping[str, Any] = {"t_ns": [], "values": []}


@dataclass(frozen=True)
class Facts:
    """What a page needs of a meter: its class, and the time (s) over which it averages."""

    accuracy: AccuracyClass
    window_s: float


@dataclass(frozen=True)
class AlignedMeter:
    """The clock of a meter at the loads, and its energies; none if its clock has no relation."""

    clocks: tuple[LoadOffset, ...]
    energies: tuple[WindowEnergy, ...] = ()


def aligned_meters(evidence: Evidence, facts: Mapping[str, Facts]) -> Iterator[AlignedMeter]:
    """Yield each meter that was read at the campaign's loads. `facts` maps their names."""
    stored = evidence.reader.alignment_loads() if facts else None  # type: ignore[attr-defined]
    loads = stored or []
    for name, document in (loads[0].get("meters", {}) if loads else {}).items():
        meter = _aligned(name, document["quantity"], loads, facts[name])
        if isinstance(meter, NotComputable):
            yield AlignedMeter(offsets_of(meter, f"{name}/{document['quantity']}"))
        else:
            clocks = offsets_of(meter.alignment, meter.source)
            yield AlignedMeter(clocks, tuple(_energies(evidence, meter, document["counter"])))


def _aligned(
    name: str, quantity: str, loads: list[dict[str, Any]], facts: Facts
) -> AlignedReadings | NotComputable:
    """Return the clock of a meter, with its readings at the first load."""
    enclosing = enclosing_loads(loads)
    if isinstance(enclosing, NotComputable):
        return enclosing
    first, last, origin_ns = enclosing
    at_first, at_last = (
        load.get("meters", {}).get(name, NO_READINGS) for load in (loads[0], loads[-1])
    )
    is_counter = at_first["counter"]
    traces = tuple(
        _trace(np.array(at["t_ns"], np.int64), np.array(at["values"]), origin_ns, is_counter)
        for at in (at_first, at_last)
    )
    alignment = aligned_near((first, last), (traces[0], traces[1]), facts.window_s)
    if isinstance(alignment, NotComputable):
        return alignment
    steps = np.diff(np.unique(at_first["values"])) / MICRO
    # A step of a counter, in J, is the error of a mean power between two readings.
    resolution_w = float(steps.min(initial=np.inf)) / (facts.window_s if is_counter else 1.0)
    return AlignedReadings(
        f"{name}/{quantity}", traces[0], alignment, origin_ns, facts.window_s, resolution_w,
        facts.accuracy,
    )  # fmt: skip


def _trace(times_ns: Any, values: FloatArray, origin_ns: int, is_counter: bool) -> Trace:
    """Return powers from a counter in µJ or a gauge in µW, at times (s) since `origin_ns`."""
    times_s, scaled = (times_ns - origin_ns) / NS_PER_S, values / MICRO
    return Trace.of_counter(times_s, scaled) if is_counter else Trace(times_s, scaled)


def _energies(
    evidence: Evidence, meter: AlignedReadings, is_counter: bool
) -> Iterator[WindowEnergy]:
    """Yield the energy of each valid run, from the meter's readings in this run."""
    name, quantity = meter.source.split("/")
    of_meter = (pl.col("meter") == name) & (pl.col("quantity") == quantity)
    for run in evidence.usable["run"].to_list():
        frame = evidence.reader.quantities(run).filter(of_meter)  # type: ignore[attr-defined]
        times_ns, values = (frame.sort("t_ns")[key].to_numpy() for key in ("t_ns", "value"))
        readings = _trace(times_ns, values, meter.origin_ns, is_counter)
        yield replace(meter, readings=readings).energy(run, evidence.runs[run]["window"])
