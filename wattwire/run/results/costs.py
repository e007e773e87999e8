"""Compute the costs of a run on each of its hosts, and their sums over the hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wattwire.model.metrics import METRICS, WORST
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.record import HostRecord, RunRecord
from wattwire.run.results import power, resources
from wattwire.run.results.resources import Readings, total

Row = dict[str, Any]
SECOND = ("energy_source_second", "power_window_second_w")
ON_HOST = "{name}.on.{host}"
"""Name of a column with one host's part of a cost."""


def costs_of_hosts(
    record: RunRecord,
    readings: Mapping[str, Readings],
    sent: int | None,
    models: Mapping[str, dict[str, float] | None],
) -> Row:
    """Return the CPU, memory, bytes, power and energy of the window, summed over the hosts.

    `sent` is the number of messages in the window. If it is None, the costs per message are
    unknown. With several hosts, the part of each host is in a column of its own.
    """
    machines = {
        name: _machine_power(host, readings[name])
        for name, host in record.hosts.items()
        if host.machine == name
    }
    by_host = {}
    for name, host in record.hosts.items():
        row = _costs(record, host, readings[name], sent, models.get(name))
        if cost_window(host)[1] > cost_window(host)[0]:
            machine, powers = record.hosts[host.machine], machines[host.machine]
            processes = _processes(record, name)
            row |= resources.attributed_energy(
                readings[name],
                processes,
                (cost_window(host), _span(host.baselines["silent"])),
                readings[machine.name],
                (cost_window(machine), _span(machine.baselines["silent"])),
                powers.get("dynamic_j"),
            )
            row |= resources.busy_share_energy(
                readings[name],
                processes,
                cost_window(host),
                readings[machine.name],
                cost_window(machine),
                powers.get("power_window_w"),
            )
        by_host[name] = row | {k: v for k, v in machines.get(name, {}).items() if k != "dynamic_j"}
    return sum_of_hosts(by_host)


def sum_of_hosts(by_host: Mapping[str, Row]) -> Row:
    """Return the sum of each column over the hosts that have it, and each host's own value.

    `Metric.over_hosts` states which columns have the highest value instead. A column of one process
    has the process in its name, so only one host has it.
    """
    if len(by_host) == 1:
        (row,) = by_host.values()
        return row
    values: dict[str, list[Any]] = {}
    own: Row = {}
    measured = [row for row in by_host.values() if "energy_source" in row]
    # A sum over fewer machines than the first source's would differ from it by itself.
    left_out = () if all(SECOND[0] in row for row in measured) else SECOND
    for host, row in by_host.items():
        for name, value in row.items():
            if name in left_out:
                continue
            values.setdefault(name, []).append(value)
            if "." not in name:
                own[ON_HOST.format(name=name, host=host)] = value
    sums = {name: _combined(name, parts) for name, parts in values.items()}
    return sums | own


def _combined(name: str, parts: list[Any]) -> Any:
    if any(isinstance(part, str) for part in parts):
        return " and ".join(sorted({part for part in parts if part}))
    metric = METRICS.get(name)
    return max(parts) if metric and metric.over_hosts == WORST else total(parts)


def _processes(record: RunRecord, host: str) -> list[str]:
    nodes, services = record.on_host(host)
    return [*nodes, *services]


def cost_window(host: HostRecord) -> power.Span:
    """Return the window without the warm-up, on the host's clock."""
    return host.window["cost_begin_ns"], host.window["end_ns"]


def _span(baseline: dict[str, int]) -> power.Span:
    return baseline["begin_ns"], baseline["end_ns"]


def _costs(
    record: RunRecord,
    host: HostRecord,
    readings: Readings,
    sent: int | None,
    model: dict[str, float] | None,
) -> Row:
    """Return the costs of the processes on one host."""
    processes, window = _processes(record, host.name), cost_window(host)
    if window[1] <= window[0]:
        return dict(resources.life_costs(readings, processes))
    return {
        **resources.cpu_costs(readings, processes, window, _span(host.baselines["silent"]), sent),
        **resources.wire_costs(readings, window, sent),
        **resources.memory_costs(readings, processes, window),
        **resources.life_costs(readings, processes),
        **resources.energy_estimates(readings, processes, window, model),
    }


def _machine_power(host: HostRecord, readings: Readings) -> Row:
    """Return a machine's power in both baselines and in the window, from a single source.

    `dynamic_j` is its energy in the window above the silent baseline, if both are known.
    """
    window, silent = cost_window(host), _span(host.baselines["silent"])
    if window[1] <= window[0]:
        return {}
    machine_span = _span(host.baselines["machine"])
    series = host.sampling.get("series", [])
    spans = [machine_span, silent, window]
    source, of_window = power.window_powers(readings, series, spans, window)
    run_span = machine_span[1], readings.end_ns or machine_span[1]
    window_w, silent_w = of_window["power_window_w"], power.mean_w(readings, source, silent)
    row: Row = {
        "run_s": (run_span[1] - run_span[0]) / SECOND_NS,
        "power_run_w": power.mean_w(readings, source, run_span),
        "power_machine_w": power.mean_w(readings, source, machine_span),
        "power_silent_w": silent_w,
        **of_window,
    }
    if window_w is not None and silent_w is not None:
        row["dynamic_j"] = (window_w - silent_w) * (window[1] - window[0]) / SECOND_NS
    return row
