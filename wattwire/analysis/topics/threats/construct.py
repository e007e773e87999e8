"""Find threats to construct validity, where a number may not measure the named quantity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.host_facts import meters_of
from wattwire.model.derived import column

PERIODS_MIN = 20
"""Minimum number of sampling periods per window. With fewer, one period exceeds 5 % of the window.
"""


@dataclass(frozen=True)
class AbsentMeter:
    """A meter of energy that was not readable, with the reason, "" if it gave none."""

    meter: str
    reason: str


@dataclass(frozen=True)
class ShortWindows:
    """Windows (s) of which up to `share` of the CPU time is interpolated between two readings."""

    period_s: float
    shortest_s: float
    median_s: float
    share: float


@dataclass(frozen=True)
class Construct:
    """What energy, CPU time and bytes include besides the named quantity.

    `absent` has the meters of energy without readings, if no run has a measured energy.
    """

    has_energy: bool = False
    absent: tuple[AbsentMeter, ...] = ()
    has_estimates: bool = False
    short_windows: ShortWindows | None = None
    is_on_one_host: bool = False
    has_wire_bytes: bool = False


def construct(evidence: Evidence) -> Construct:
    """Return the threats to construct validity of a measured campaign."""
    frame = evidence.usable
    has_energy = bool(np.isfinite(column(frame, "energy_message_j")).any())
    # A command need not have nodes or messages, so nothing is known of its network.
    has_nodes = evidence.study.request is None
    return Construct(
        has_energy,
        () if has_energy else tuple(_absent(evidence)),
        any("energy_estimate" in name for name in frame.columns),
        _short_windows(evidence),
        has_nodes and not any(len(run.get("hosts", {})) > 1 for run in evidence.runs.values()),
        has_nodes and "wire_bytes_per_message" in frame.columns,
    )


def _absent(evidence: Evidence) -> Iterator[AbsentMeter]:
    for _, meter in meters_of(evidence.reader.machine):
        has_energies = any(map(_is_energy, meter.get("quantities", [])))
        if meter.get("state") != "present" and has_energies:
            yield AbsentMeter(meter["name"], meter.get("reason") or "")


def _is_energy(quantity: Any) -> bool:
    return isinstance(quantity, dict) and quantity.get("rank") is not None


def _short_windows(evidence: Evidence) -> ShortWindows | None:
    """Return the windows if their counted part begins between two readings and is short.

    There are readings at the beginning and at the end of the window, but not at the end of a
    warm-up in calls.
    """
    windows_s = column(evidence.usable, "cost_window_s")
    windows_s = windows_s[windows_s > 0]
    period_s = 1.0 / evidence.study.meters.tick_hz
    if not evidence.warmup_calls or not windows_s.size or windows_s.min() >= PERIODS_MIN * period_s:
        return None
    shortest_s = float(windows_s.min())
    share = min(1.0, period_s / shortest_s)
    return ShortWindows(period_s, shortest_s, float(np.median(windows_s)), share)
