"""Summarize counted instructions and round trips of devices that an emulator executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.emulated import DEVICE, INSTRUCTIONS
from wattwire.model.derived import FloatArray, column
from wattwire.stats import Band

LATENCY = "latency_p50_us"


@dataclass(frozen=True)
class Device:
    """A device with the instructions per block that the emulator counted.

    `instructions` is the median over the runs, and `deviation` the largest deviation from it in
    percent. `time_us` has the bounds of a block's time at the device's clock: instructions times
    the bounds of the cycles per instruction that the cell's manifest states. `clock_mhz` and
    `time_us` are None if the manifest states no clock.
    """

    device: str
    runs: int
    instructions: float
    deviation: float
    clock_mhz: float | None
    time_us: Band | None


@dataclass(frozen=True)
class RoundTrips:
    """The median over a treatment's runs of their median latency, which the emulator determines."""

    treatment: tuple[str, ...]
    device: str
    runs: int
    latency_us: float | None


@dataclass(frozen=True)
class EmulatedDevices:
    """Devices with counted instructions, and round trips of all treatments with a device."""

    devices: tuple[Device, ...] = ()
    round_trips: tuple[RoundTrips, ...] = ()


def emulated_devices(evidence: Evidence) -> EmulatedDevices:
    """Return the devices and round trips of the valid runs with an emulated device.

    There are none for imported data and commands.
    """
    if not (evidence.has_messages and evidence.emulated.height):
        return EmulatedDevices()
    return EmulatedDevices(tuple(_devices(evidence)), tuple(_round_trips(evidence)))


def _devices(evidence: Evidence) -> Iterator[Device]:
    frame = evidence.emulated
    for device in sorted(frame[DEVICE].unique().to_list()):
        of_device = frame.filter(frame[DEVICE] == device)
        counted = _finite(of_device, INSTRUCTIONS)
        if counted.size:
            median = float(np.median(counted))
            deviation = 100 * float(np.max(np.abs(counted / median - 1.0)))
            table = _manifest_table(evidence, of_device["run"].to_list(), device)
            clock_mhz = table["clock_hz"] / 1e6 if "clock_hz" in table else None
            time_us = _block_time_us(median, table) if "clock_hz" in table else None
            yield Device(device, int(counted.size), median, deviation, clock_mhz, time_us)


def _manifest_table(evidence: Evidence, runs: Sequence[str], device: str) -> Mapping[str, Any]:
    """Return the manifest's description of a device, from the document of a run; {} if unknown."""
    nodes = (node for run in runs for node in evidence.runs.get(run, {}).get("nodes", []))
    tables = (node.get("emulated") or {} for node in nodes)
    return next((table for table in tables if table.get("device") == device), {})


def _block_time_us(instructions: float, table: Mapping[str, Any]) -> Band:
    """Return the bounds of a block's time (µs) on the device at its clock."""
    fewest, most = table["cycles_per_instruction"]
    us_per_cycle = 1e6 / table["clock_hz"]
    return Band(instructions * fewest * us_per_cycle, instructions * most * us_per_cycle)


def _round_trips(evidence: Evidence) -> Iterator[RoundTrips]:
    for key, frame in by_treatment(evidence, evidence.emulated).items():
        finite_us = _finite(frame, LATENCY)
        latency_us = float(np.median(finite_us)) if finite_us.size else None
        yield RoundTrips(key, frame[DEVICE][0], frame.height, latency_us)


def _finite(frame: pl.DataFrame, name: str) -> FloatArray:
    """Return the finite values of a column."""
    values = column(frame, name)
    return values[np.isfinite(values)]
