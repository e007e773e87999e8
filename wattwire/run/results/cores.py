"""Compute where the processes of a run were executed, from the readings of their threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from wattwire.hosts.cores import MachineCores
from wattwire.model.cores.topology import NEARNESS, nearness
from wattwire.model.verdict import Reason, Verdict
from wattwire.run.record import RunRecord
from wattwire.run.results.costs import cost_window
from wattwire.run.results.resources import Readings, total

RUN_TIME = "run_time_on"
"""Quantity of a process on a CPU. Its subject is PROCESS@cpuN."""
ON_CPU = "@cpu"
COUNTS = (
    ("run_delay_us_per_message", "run_delay", 1e-3),
    ("migrations_per_message", "migrations", 1.0),
    ("switches_voluntary_per_message", "thread_switches_voluntary", 1.0),
    ("switches_involuntary_per_message", "thread_switches_involuntary", 1.0),
)
"""Column, quantity, and the factor to the column's unit."""
COLUMN_OF = {name: f"ran_on_{name}" for name in NEARNESS}
OUTSIDE_SHARE_MAX = 0.01
"""Share of a process's run time outside its asked CPUs above which the run is not valid: its
library has chosen other CPUs.
"""
Row = dict[str, Any]
ByCpu = Mapping[int, npt.NDArray[np.float64]]


def where_it_ran(
    record: RunRecord, readings: Mapping[str, Readings], sent: int | None
) -> tuple[Row, dict[str, Any], list[Reason]]:
    """Return the summary's columns, the entry `cores` of run.json, and reasons against the run.

    `sent` is the number of messages in the window. Each reading attributes the run time since the
    last one to the CPU on which a thread ran last. Nearness is the mean over the connected pairs of
    nodes of one machine: in each interval between readings in which both ran, it is the probability
    that a moment of one and a moment of the other fall on CPUs of this nearness.
    """
    nodes = record.node_processes
    if not nodes or not record.window.get("end_ns"):
        return {}, {}, []
    assigned = {process: cpus for m in record.cores for process, cpus in m.assignment.cpus.items()}
    row: Row = {}
    for column, quantity, scale in COUNTS:
        increase = total(_increase(record, readings, quantity, process) for process in nodes)
        row[column] = None if increase is None or not sent else increase * scale / sent
    ran_ns = {p: _ran_by_cpu(record, readings, p) for p in [*nodes, *record.services]}
    pairs = [pair for pair in _pairs(record, ran_ns) if pair["intervals"]]
    document = {
        "level": record.cores_level,
        "machines": [machine.to_json() for machine in record.cores],
        "processes": {
            process: {str(cpu): round(float(ns.sum())) for cpu, ns in by_cpu.items()}
            for process, by_cpu in ran_ns.items()
        },
        "pairs": pairs,
    }
    for name, column in COLUMN_OF.items():
        shares = [pair[name] for pair in pairs]
        row[column] = sum(shares) / len(shares) if shares else None
    return row, document, [*_outside(assigned, ran_ns)]


def _outside(
    assigned: Mapping[str, Iterable[int]], ran_ns: Mapping[str, ByCpu]
) -> Iterable[Reason]:
    """Yield a reason for each process that ran on other CPUs than it was given."""
    for process, cpus in assigned.items():
        by_cpu = {cpu: float(ns.sum()) for cpu, ns in ran_ns.get(process, {}).items()}
        elsewhere = {cpu: ns for cpu, ns in by_cpu.items() if cpu not in {*cpus}}
        share = sum(elsewhere.values()) / max(1.0, sum(by_cpu.values()))
        if share > OUTSIDE_SHARE_MAX:
            text = (
                f"{process} ran {share:.0%} of its time on CPU {', '.join(map(str, elsewhere))} "
                f"instead of {', '.join(map(str, cpus))}; its library chooses CPUs itself"
            )
            yield Reason(Verdict.INVALID, "cores", text)


def _increase(
    record: RunRecord, readings: Mapping[str, Readings], quantity: str, process: str
) -> float | None:
    host = record.host_of(process)
    return readings[host.name].increase(quantity, "process", process, *cost_window(host))


def _ran_by_cpu(record: RunRecord, readings: Mapping[str, Readings], process: str) -> ByCpu:
    """Return CPU → run time (ns) in each interval between the ticks of the senders' host."""
    if not record.sampling.get("ticks"):  # readings at marks alone do not show where it ran between
        return {}
    host = record.host_of(process)
    of_host = readings[host.name]
    grid_ns = _grid_ns(record, readings[record.name]) + host.offset_ns - record.offset_ns
    prefix = f"{process}{ON_CPU}"
    ran: dict[int, npt.NDArray[np.float64]] = {}
    for subject in of_host.subjects(RUN_TIME, "process"):
        if subject.startswith(prefix):
            times_ns, values = of_host.series(RUN_TIME, "process", subject)
            ran[int(subject.removeprefix(prefix))] = np.diff(
                np.interp(grid_ns, times_ns, values, left=0.0)
            )
    return ran


def _grid_ns(record: RunRecord, readings: Readings) -> npt.NDArray[np.int64]:
    """Return the times (ns) of the readings in the window on the clock of the senders' host."""
    begin_ns, end_ns = cost_window(record)
    times_ns: npt.NDArray[np.int64] = np.array([], np.int64)
    for subject in readings.subjects(RUN_TIME, "process"):
        series_ns, _ = readings.series(RUN_TIME, "process", subject)
        own = record.deployment.by_process.get(subject.partition(ON_CPU)[0])
        if own is not None and len(series_ns) > len(times_ns):
            times_ns = series_ns
    inside = times_ns[(times_ns > begin_ns) & (times_ns < end_ns)]
    return np.unique(np.concatenate([[begin_ns], inside, [end_ns]])).astype(np.int64)


def _pairs(record: RunRecord, ran_ns: Mapping[str, ByCpu]) -> Iterable[dict[str, Any]]:
    """Yield each connected pair of nodes on one machine with its shares of NEARNESS."""
    processes = {node.node: node.process for node in record.nodes}
    for origin, end in record.deployment.edges:
        pair = processes[origin], processes[end]
        hosts = {record.host_of(process).name for process in pair}
        machine = next((m for m in record.cores if hosts <= {*m.hosts}), None)
        if machine is not None:
            yield {
                "from": pair[0],
                "to": pair[1],
                **_shares(ran_ns[pair[0]], ran_ns[pair[1]], machine),
            }


def _shares(one: ByCpu, other: ByCpu, machine: MachineCores) -> dict[str, Any]:
    """Return the shares of NEARNESS, and the number of intervals in which both nodes ran."""
    near = nearness(machine.machine.cpus)
    sums = dict.fromkeys(NEARNESS, 0.0)
    ran = [np.sum([*by_cpu.values()], axis=0) if by_cpu else np.zeros(0) for by_cpu in (one, other)]
    if not all(len(times) for times in ran):
        return {**sums, "intervals": 0}
    both = (ran[0] > 0) & (ran[1] > 0)
    intervals = int(both.sum())
    for cpu, of_one in one.items():
        for other_cpu, of_other in other.items():
            shares = (of_one[both] / ran[0][both]) * (of_other[both] / ran[1][both])
            sums[near.get((cpu, other_cpu), NEARNESS[-1])] += float(shares.sum())
    return {
        **{name: value / max(1, intervals) for name, value in sums.items()},
        "intervals": intervals,
    }
