"""Compute the energy of a run's window from readings on another clock, with a bound of its error.

How: the loads of known times before the first and after the last run give the offset of the
readings' clock twice, and thus its rate. The terms of the bound are added linearly: the range of
the power at each end of the window for as long as its time is unknown, half a step of the power,
and the class that the vendor states.
What it misses: a meter that averages over more than its stated time is later than it seems, and the
offset contains this delay. The power of the load must follow the load at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.model.outside_meters import SLACK_SHARE, WINDOWS_PER_READING, AccuracyClass
from wattwire.stats import Interval, NotComputable
from wattwire.stats.series.alignment import Alignment, Load, Trace, bounded_energy

NS_PER_S = 1e9
LOADS_MIN = 2
WITHOUT_LOADS = (
    "the campaign has no load before and after its runs, by which a trace could be aligned; "
    "measure again with --align"
)


@dataclass(frozen=True)
class LoadOffset:
    """The offset (s) of a source's clock at a load, and the half-width (s) of its interval."""

    load: str
    offset_s: Interval | NotComputable
    half_width_s: float | None = None
    source: str = ""


@dataclass(frozen=True)
class WindowEnergy:
    """The energy (J) of a run's window from a source, and the terms of the bound of its error.

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
    source: str = ""


@dataclass(frozen=True)
class AlignedReadings:
    """Readings and the relation of their clock, as seconds since `origin_ns` of our clock.

    `window_s` is the time over which a reading is a mean, and `resolution_w` the step of a power.
    """

    source: str
    readings: Trace
    alignment: Alignment
    origin_ns: int
    window_s: float
    resolution_w: float
    accuracy: AccuracyClass

    def energy(self, run: str, window: Mapping[str, Any]) -> WindowEnergy:
        """Return the energy in the window of a run, from its stored times."""
        begin_ns = window.get("cost_begin_ns", window["start_ns"])
        span_s = tuple((at - self.origin_ns) / NS_PER_S for at in (begin_ns, window["end_ns"]))
        seconds, least_s = span_s[1] - span_s[0], WINDOWS_PER_READING * self.window_s
        if seconds < least_s * (1 - SLACK_SHARE):
            reason = f"too short for this meter: the window has less than {least_s:g} s"
            return WindowEnergy(run, seconds, reason=reason, source=self.source)
        relation = self.alignment.relation
        energy = bounded_energy(
            relation.our_time(self.readings.times_s), self.readings.powers_w,
            (span_s[0], span_s[1]), self.window_s, relation.half_width_s, self.resolution_w,
            (self.accuracy.share, self.accuracy.watts),
        )  # fmt: skip
        if isinstance(energy, NotComputable):
            return WindowEnergy(run, seconds, reason=energy.reason, source=self.source)
        parts_j = (energy.edges_j, energy.resolution_j, energy.class_j, energy.bound_j)
        power_w = energy.joules / seconds
        return WindowEnergy(run, seconds, energy.joules, power_w, *parts_j, source=self.source)


def offsets_of(alignment: Alignment | NotComputable, source: str) -> tuple[LoadOffset, ...]:
    """Return the offset of a source's clock at both loads, or one row with the reason."""
    if isinstance(alignment, NotComputable):
        return (LoadOffset("both", alignment, source=source),)
    offsets = {"first": alignment.first, "last": alignment.last}
    return tuple(
        LoadOffset(name, offset, (offset.high - offset.low) / 2, source)
        for name, offset in offsets.items()
    )


def enclosing_loads(
    documents: Sequence[Mapping[str, Any]] | None,
) -> tuple[Load, Load, int] | NotComputable:
    """Return the first and the last load of a campaign, and the begin of the first one (ns).

    The loads' times are in s since this begin.
    """
    if documents is None or len(documents) < LOADS_MIN:
        return NotComputable(WITHOUT_LOADS)
    first, last = documents[0], documents[-1]
    if first["boot_id"] != last["boot_id"]:
        return NotComputable(
            "the machine was booted again between the first and the last run, so that no clock "
            "relates both loads"
        )
    origin_ns = int(first["boundaries_ns"][0])
    return _load(first, origin_ns), _load(last, origin_ns), origin_ns


def _load(document: Mapping[str, Any], origin_ns: int) -> Load:
    since_ns = np.array(document["boundaries_ns"], np.int64) - origin_ns
    return Load(since_ns / NS_PER_S, np.array(document["levels"], np.float64))
