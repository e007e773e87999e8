"""Compute the CPU time, memory and energy of a run from the sampler's readings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.deployment import service_of
from wattwire.run.node_specs import SECOND_NS

CPU_TIME, RSS, SENT_BYTES = "cpu_time", "rss", "tx_bytes"
OF_LIFE = (
    ("memory_max_kib", "max_rss", 1 / 1024),
    ("faults_minor", "minor_faults", 1.0),
    ("switches_voluntary", "voluntary_switches", 1.0),
)
"""Quantities of an ended process: column, quantity, factor to the column's unit."""


class Readings:
    """Interpolated access to the quantities of one run. Counters must be monotonic."""

    def __init__(self, quantities: pl.DataFrame) -> None:
        self._frame = quantities
        # Split the table only once, because dictionary look-ups are much faster than filters.
        keys = ["quantity", "scope", "subject", "kind", "meter"]
        series = quantities.sort("t_ns").group_by(keys, maintain_order=True)
        self._series_of = series.agg("t_ns", "value").sort("meter", descending=True)
        # If several meters have a series, the first meter by name is used. The sort order writes it
        # last.
        self._row_of = {key[:4]: row for row, key in enumerate(self._series_of[keys].iter_rows())}

    def subjects(self, quantity: str, scope: str) -> list[str]:
        """Return the names of the subjects that have this quantity."""
        return sorted({key[2] for key in self._row_of if key[:2] == (quantity, scope)})

    def series(self, quantity: str, scope: str, subject: str) -> tuple[Any, Any]:
        """Return the times (ns) and values of a measured series, in order; empty without one."""
        return self._series(quantity, scope, subject, "measured")

    def _series(self, quantity: str, scope: str, subject: str, kind: str) -> tuple[Any, Any]:
        row = self._row_of.get((quantity, scope, subject, kind))
        if row is None:
            return np.array([]), np.array([])
        return tuple(self._series_of[name][row].to_numpy() for name in ("t_ns", "value"))

    def of_meter(self, meter: str, quantity: str, subject: str) -> tuple[Any, Any]:
        """Return the times (ns) and values of one meter's series."""
        chosen = self._frame.filter(
            pl.col("meter") == meter,
            pl.col("quantity") == quantity,
            pl.col("subject") == subject,
        ).sort("t_ns")
        return chosen["t_ns"].to_numpy(), chosen["value"].to_numpy()

    def since(
        self,
        quantity: str,
        scope: str,
        subject: str,
        begin_ns: int,
        end_ns: int,
        between: bool = False,
    ) -> Any:
        """Return a gauge's values in an interval.

        Each value covers the time since the previous reading. The reading at the end of the
        interval is included. The reading at its begin is excluded unless `between` is true, which
        means that the interval begins between two readings.
        """
        times, values = self._series(quantity, scope, subject, "measured")
        first = int(np.searchsorted(times, begin_ns))
        last = int(np.searchsorted(times, end_ns))
        return values[first + (not between) : last + 1]

    def increase(
        self,
        quantity: str,
        scope: str,
        subject: str,
        begin_ns: int,
        end_ns: int,
        kind: str = "measured",
    ) -> float | None:
        """Return the increase of a counter in an interval, or None without two readings.

        Values between two readings are interpolated linearly. A mark's readings are taken just
        after its time. A counter whose first reading is later than `begin_ns` therefore counts from
        that reading, which excludes the start of the process. If a process ends before `end_ns`,
        its last value is used.
        """
        times, values = self._series(quantity, scope, subject, kind)
        if len(times) < 2:
            return None
        at_begin = float(np.interp(begin_ns, times, values))
        at_end = float(np.interp(end_ns, times, values))
        return at_end - at_begin

    def value_at(self, quantity: str, scope: str, subject: str, t_ns: int) -> float | None:
        """Return a counter's value at a time, interpolated; None without a reading."""
        times, values = self._series(quantity, scope, subject, "measured")
        return float(np.interp(t_ns, times, values)) if len(times) else None

    def stalled_ns(self, begins_ns: npt.NDArray[Any], ends_ns: npt.NDArray[Any]) -> Any:
        """Return how long the machine stalled in intervals, at most, by stalls of 1 ms and more.

        The time of a stall is known only between two readings, so each interval counts from the
        last reading before it to the first after it. Without readings, all values are 0.
        """
        times, stalled = self._series("stalled_time", "machine", "machine", "measured")
        if not len(times):
            return np.zeros(len(begins_ns))
        first = np.maximum(np.searchsorted(times, begins_ns, side="right") - 1, 0)
        last = np.minimum(np.searchsorted(times, ends_ns), len(times) - 1)
        return stalled[last] - stalled[first]

    def mean(
        self, quantity: str, scope: str, subject: str, begin_ns: int, end_ns: int
    ) -> float | None:
        """Return a gauge's mean in an interval, or the nearest reading if it is empty."""
        times, values = self._series(quantity, scope, subject, "measured")
        if not len(times):
            return None
        in_interval = (times >= begin_ns) & (times <= end_ns)
        if in_interval.any():
            return float(values[in_interval].mean())
        middle = (begin_ns + end_ns) // 2
        return float(values[np.abs(times - middle).argmin()])

    def last(self, quantity: str, scope: str, subject: str) -> float | None:
        """Return the last reading of a gauge; None without readings."""
        _, values = self._series(quantity, scope, subject, "measured")
        return float(values[-1]) if len(values) else None

    @property
    def end_ns(self) -> int | None:
        """Return the time (ns) of the last reading; None without readings."""
        times = self._frame["t_ns"]
        return None if times.is_empty() else int(times.max())  # type: ignore[arg-type]

    def rate(
        self, quantity: str, scope: str, subject: str, begin_ns: int, end_ns: int
    ) -> float | None:
        """Return the increase of a counter per second."""
        increase = self.increase(quantity, scope, subject, begin_ns, end_ns)
        return None if increase is None else increase / ((end_ns - begin_ns) / SECOND_NS)


def column(stem: str, process: str) -> str:
    """Return the name of a process's summary column, such as STEM.publisher.0 for publisher-0."""
    return f"{stem}.{service_of(process).replace('-', '.', 1)}"


def total(values: Iterable[float | None]) -> float | None:
    """Return the sum, or None if any value is unknown."""
    summed = 0.0
    for value in values:
        if value is None:
            return None
        summed += value
    return summed


def cpu_costs(
    readings: Readings,
    processes: list[str],
    window: tuple[int, int],
    silent: tuple[int, int],
    sent: int | None,
) -> dict[str, float | None]:
    """Return the CPU costs of a run: per process, per message, and above the silent baseline."""
    seconds = (window[1] - window[0]) / SECOND_NS
    per_process = {p: readings.increase(CPU_TIME, "process", p, *window) for p in processes}
    silent_rates = [readings.rate(CPU_TIME, "process", p, *silent) for p in processes]
    used_ns = total(per_process.values())
    silent_rate = total(silent_rates)
    costs: dict[str, float | None] = {}
    for process, cpu_ns in per_process.items():
        share = None if cpu_ns is None else cpu_ns / 1e9 / seconds
        costs[column("cpu_share", process)] = share
    costs["cpu_us_per_message"] = used_ns / 1000 / sent if used_ns is not None and sent else None
    if used_ns is not None and silent_rate is not None and sent:
        above_silent_ns = used_ns - silent_rate * seconds
        costs["cpu_us_per_message_above_silent"] = above_silent_ns / 1000 / sent
    costs["cpu_silent_share"] = None if silent_rate is None else silent_rate / 1e9
    return costs


def wire_costs(
    readings: Readings, window: tuple[int, int], sent: float | None
) -> dict[str, float | None]:
    """Return the bytes per message that the host's interfaces sent; None if they were not read.

    The counters of an interface include the traffic of other programs.
    """
    interfaces = readings.subjects(SENT_BYTES, "interface")
    sent_bytes = total(
        readings.increase(SENT_BYTES, "interface", name, *window) for name in interfaces
    )
    if not interfaces or sent_bytes is None or not sent:
        return {"wire_bytes_per_message": None}
    return {"wire_bytes_per_message": sent_bytes / sent}


def memory_costs(
    readings: Readings, processes: list[str], window: tuple[int, int]
) -> dict[str, float | None]:
    """Return the mean resident memory of each process in the window, in KiB."""
    costs: dict[str, float | None] = {}
    for process in processes:
        value = readings.mean(RSS, "process", process, *window)
        costs[column("memory_kib", process)] = None if value is None else value / 1024
    known_kib = [v for v in costs.values() if v is not None]
    costs["memory_kib_total"] = sum(known_kib) if len(known_kib) == len(processes) else None
    return costs


def life_costs(readings: Readings, processes: list[str]) -> dict[str, float | None]:
    """Return the peak memory, page faults and context switches of each process's lifetime.

    The values become known after the process ends and include all its descendants. The peak memory
    is the peak of the largest of these processes.
    """
    costs: dict[str, float | None] = {}
    for stem, quantity, factor in OF_LIFE:
        for process in processes:
            value = readings.last(quantity, "process", process)
            costs[column(stem, process)] = None if value is None else value * factor
    return costs


def energy_estimates(
    readings: Readings,
    processes: list[str],
    window: tuple[int, int],
    model: dict[str, float] | None,
) -> dict[str, float | None]:
    """Return the estimated range of each process's energy (J).

    The estimate is the CPU time times the model's joules per CPU second.
    """
    costs: dict[str, float | None] = {}
    if model is None:
        return costs
    low, high = model["joules_per_cpu_second_low"], model["joules_per_cpu_second_high"]
    for process in processes:
        cpu_ns = readings.increase(CPU_TIME, "process", process, *window)
        for end, joules_per_second in (("low", low), ("high", high)):
            value = None if cpu_ns is None else cpu_ns / 1e9 * joules_per_second
            costs[column(f"energy_estimate_{end}_j", process)] = value
    return costs


def busy_share_energy(
    readings: Readings,
    processes: Iterable[str],
    window: tuple[int, int],
    machine_readings: Readings,
    machine_window: tuple[int, int],
    machine_w: float | None,
) -> dict[str, float | None]:
    """Return each process's share (J) of all energy of its machine, by its share of busy CPU time.

    PowerJoular and Scaphandre compute the power of a process in this way. It charges the power of
    the idle machine to the processes that run (compare `attributed_energy`). Another host of the
    same machine may read the machine's meters.
    """
    busy_ns = machine_readings.increase("busy_time", "machine", "machine", *machine_window)
    if machine_w is None or not busy_ns:
        return {}
    machine_j = machine_w * (machine_window[1] - machine_window[0]) / SECOND_NS
    energies_j: dict[str, float | None] = {}
    for process in processes:
        used_ns = readings.increase(CPU_TIME, "process", process, *window)
        share = None if used_ns is None else used_ns / busy_ns
        energies_j[column("energy_busy_share_j", process)] = (
            None if share is None else machine_j * share
        )
    return energies_j


Spans = tuple[tuple[int, int], tuple[int, int]]
"""The window and the silent baseline (ns) on one clock."""


def attributed_energy(
    readings: Readings,
    processes: list[str],
    spans: Spans,
    machine_readings: Readings,
    machine_spans: Spans,
    dynamic_j: float | None,
) -> dict[str, float | None]:
    """Return each process's share of the measured dynamic energy of its machine.

    The share is in proportion to CPU time above the silent rate. The denominator is the busy time
    of the whole machine, so the energy of other processes is not attributed to the nodes
    (measurement, 2). Another host of the same machine may read the machine's meters.
    """
    machine_window, machine_silent = machine_spans
    busy_ns = machine_readings.increase("busy_time", "machine", "machine", *machine_window)
    silent_busy_rate = machine_readings.rate("busy_time", "machine", "machine", *machine_silent)
    if dynamic_j is None or busy_ns is None or silent_busy_rate is None:
        return {}
    machine_s = (machine_window[1] - machine_window[0]) / SECOND_NS
    busy_above_silent_ns = busy_ns - silent_busy_rate * machine_s
    window, silent = spans
    seconds = (window[1] - window[0]) / SECOND_NS
    above_ns: dict[str, float | None] = {}
    for process in processes:
        used_ns = readings.increase(CPU_TIME, "process", process, *window)
        silent_rate = readings.rate(CPU_TIME, "process", process, *silent)
        above_ns[process] = None
        if used_ns is not None and silent_rate is not None:
            above_ns[process] = used_ns - silent_rate * seconds
    # The machine was busy at least as long as these processes, which are read at other times.
    of_processes_ns = sum(max(0.0, ns) for ns in above_ns.values() if ns is not None)
    whole_ns = max(busy_above_silent_ns, of_processes_ns)
    return {
        column("energy_j", process): (
            None if ns is None or whole_ns <= 0 else dynamic_j * ns / whole_ns
        )
        for process, ns in above_ns.items()
    }
