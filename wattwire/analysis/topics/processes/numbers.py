"""Compute the costs of a command or an attached system, over its repeats and by process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wattwire.analysis.charts import BOX_RUNS_MIN, LINEAR, Chart, rounded
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.processes.ends import EarlyEnd, Failures, early_ends, failures
from wattwire.analysis.topics.processes.executed import (
    CPU_IS_BOUND,
    PEAK_IS_BOUND,
    SWITCHES_ARE_BOUND,
    Executed,
    Row,
    Value,
    mean_of,
    tables_of,
)
from wattwire.analysis.topics.processes.subjects import subject
from wattwire.analysis.topics.processes.whole_command import Cost, Figure, whole_figures
from wattwire.model.metrics import is_printed
from wattwire.stats import Band

PRINTED_MAX = 3
"""Maximum number of printed figures in the first sentence."""
COSTS_DRAWN = ("window_s", "cpu_s")
OF_PROBE_DRAWN = ("_latency_p50_us", "_path_p50_us")
CHARTS_MAX = 12
"""Maximum number of charts, because a graph can have a hundred topics."""
BOUND_BY = {
    "cpu_s": CPU_IS_BOUND,
    "memory_peak_kib": PEAK_IS_BOUND,
    "voluntary_switches": SWITCHES_ARE_BOUND,
    "involuntary_switches": SWITCHES_ARE_BOUND,
}
WITH_INTERVAL = ("cpu_s", "energy_j")
"""Intervals in all columns would need twice the width of the page."""
COSTS = (
    "cpu_s", "cpu_user_s", "cpu_system_s", "cpu_share", "memory_mean_kib", "memory_peak_kib",
    "pss_mean_kib", "threads_max", "voluntary_switches", "involuntary_switches", "energy_j",
)  # fmt: skip


@dataclass(frozen=True)
class ProcessCosts:
    """The means over the repeats of processes with one name, `count` of them per repeat."""

    process: str
    count: float
    cpu_s: Cost
    cpu_user_s: Cost
    cpu_system_s: Cost
    cpu_share: Cost
    memory_mean_kib: Cost
    memory_peak_kib: Cost
    pss_mean_kib: Cost
    threads_max: Cost
    voluntary_switches: Cost
    involuntary_switches: Cost
    energy_j: Cost
    energy_estimate: Band | None


@dataclass(frozen=True)
class Costs:
    """The costs of a command, or of one of its variants.

    `windows` repeats have a window, of `window_s` on average. `figures` has those of the whole
    command, of which the first sentence names the `printed` ones.
    """

    subject: str
    variant: str
    repeats: int
    windows: int
    window_s: float | None
    cpu_s: Value
    figures: tuple[Figure, ...]
    rows: tuple[ProcessCosts, ...]
    failures: Failures | None
    early_ends: tuple[EarlyEnd, ...]
    probe: str = ""
    """Name of the probe that watched the processes, and is none of them."""

    @property
    def printed(self) -> tuple[Figure, ...]:
        """The figures that the first sentence names."""
        return tuple(figure for figure in self.figures if _is_printed(figure))[:PRINTED_MAX]


@dataclass(frozen=True)
class Repeats:
    """The values of a figure in each repeat."""

    id: str
    title: str
    unit: str
    chart: Chart


@dataclass(frozen=True)
class Processes:
    """The costs of a command or of its variants; empty if `exec` did not measure the campaign."""

    tables: tuple[Costs, ...] = ()
    charts: tuple[Repeats, ...] = ()
    charts_left_out: int = 0
    runs_of_box: int = BOX_RUNS_MIN


def processes(evidence: Evidence) -> Processes:
    """Return the costs of a command or of its variants."""
    tables = tables_of(evidence.reader)
    return replace(with_charts(tables), tables=tuple(map(costs, tables)))


def with_charts(tables: Sequence[Executed]) -> Processes:
    """Return the first CHARTS_MAX charts of the repeats, and the number of the others."""
    drawn = repeats_drawn(tables)
    return Processes((), tuple(drawn[:CHARTS_MAX]), max(0, len(drawn) - CHARTS_MAX))


def costs(executed: Executed) -> Costs:
    """Return the costs of a command or of a variant."""
    windows_s = executed.values("window_s")
    return Costs(
        subject(executed.request),
        executed.variant,
        len(executed.repeats),
        len(windows_s),
        sum(windows_s) / len(windows_s) if windows_s else None,
        mean_of(executed.values("cpu_s")),
        tuple(whole_figures(executed)),
        tuple(map(_process, executed.rows)),
        failures(executed),
        tuple(early_ends(executed)),
        "" if executed.request.is_only_probe else executed.request.probe,
    )


def _process(row: Row) -> ProcessCosts:
    low, high = row.mean("energy_estimate_low_j"), row.mean("energy_estimate_high_j")
    estimate = None if low is None or high is None else Band(low, high)
    by_name = {name: _cost(row, name) for name in COSTS}
    return ProcessCosts(row.name, row.count, energy_estimate=estimate, **by_name)


def _cost(row: Row, name: str) -> Cost:
    value = row.interval(name) if name in WITH_INTERVAL else row.mean(name)
    is_bound = name in BOUND_BY and row.is_bound(BOUND_BY[name])
    return Cost(bound=value) if is_bound else Cost(value)


def repeats_drawn(tables: Sequence[Executed]) -> list[Repeats]:
    """Return the repeats of the wall time, of the CPU time, and of each printed figure."""
    names = [table.variant or subject(table.request) for table in tables]
    by_key = {figure.key: figure for table in tables for figure in whole_figures(table)}
    drawn = []
    for key, figure in sorted(by_key.items(), key=lambda item: item[0] not in COSTS_DRAWN):
        points = [
            {"value": rounded(value), "run": run, "panel": ""}
            | dict.fromkeys(("colour", "row", "treatment"), name)
            for table, name in zip(tables, names, strict=True)
            for run, value in table.values_by_run(key)
        ]
        is_drawn = key in COSTS_DRAWN or _is_printed(figure) or key.endswith(OF_PROBE_DRAWN)
        if is_drawn and len(points) > len(tables):
            part_of_id = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
            chart = Chart(points, names, rows=names, x_scale=LINEAR)
            drawn.append(Repeats(f"repeats-{part_of_id}", figure.title, figure.unit, chart))
    return drawn


def _is_printed(figure: Figure) -> bool:
    return is_printed(figure.key.partition(".")[0]) and not figure.is_of_probe
