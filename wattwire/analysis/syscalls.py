"""Compute system calls per message: the mean of each treatment over the runs that count them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment, levels_of
from wattwire.analysis.responses import CPU
from wattwire.model.deployment import role_of_process, service_of
from wattwire.model.derived import column

FIGURES = ("syscall_working_us_per_message", "syscall_waiting_us_per_message",
           "kernel_us_per_message")  # fmt: skip
NAMED_MAX = 3
"""Number of calls named as the difference between two treatments."""
SHOWN_MIN = 0.005
"""The table omits calls made less often per message; the sums include them."""


@dataclass
class Traced:
    """Means of one treatment over its runs, by role. Process trees of one role are summed.

    `calls` is role → call → [calls, µs] per message. `figures` is role → response → value. `cpu_us`
    is the CPU time (µs) per message of the timed runs, or NaN without timed runs.
    """

    levels: tuple[str, ...]
    title: str
    calls: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    cpu_us: float = math.nan
    runs: int = 0

    @property
    def total(self) -> float:
        """Number of calls per message of all process trees."""
        return sum(value[0] for calls in self.calls.values() for value in calls.values())

    def merged(self) -> dict[str, float]:
        """Return call → calls per message, summed over all process trees."""
        totals: dict[str, float] = defaultdict(float)
        for calls in self.calls.values():
            for name, value in calls.items():
                totals[name] += value[0]
        return dict(totals)


def documents_of(evidence: Evidence) -> list[dict[str, Any]]:
    """Return the system calls of each run that counts them, in the order of the frame."""
    return [
        evidence.reader.run(f"{row['run']}-{row['attempt']}").get("syscalls") or {}
        for row in evidence.traced.iter_rows(named=True)
    ]


def collect(evidence: Evidence, documents: Sequence[Mapping[str, Any]]) -> list[Traced]:
    """Return the counts of each treatment, in the study's order."""
    frame = evidence.traced.with_row_index("place")
    timed = by_treatment(evidence, evidence.usable)
    treatments = []
    for levels, rows in by_treatment(evidence, frame).items():
        raw_levels = {name: levels_of(rows, name)[0] for name in evidence.varied}
        title = evidence.treatment_title(raw_levels)
        sums: dict[str, dict[str, list[float]]] = {}
        figures: dict[str, dict[str, list[float]]] = {}
        runs = 0
        for row in rows.iter_rows(named=True):
            processes = documents[row["place"]].get("processes") or {}
            sent = row.get("sent") or 0
            if not processes or not sent:
                continue
            runs += 1
            for process, counted in processes.items():
                _add_calls(sums.setdefault(_role(process), {}), counted["calls"], sent)
            for role in {_role(process) for process in processes}:
                _add_figures(figures.setdefault(role, {}), row, role, processes)
        if runs:
            treatment = Traced(levels, title, runs=runs)
            treatment.calls = {
                role: {name: [v / runs for v in value] for name, value in calls.items()}
                for role, calls in sums.items()
            }
            treatment.figures = {
                role: {name: float(np.mean(values)) for name, values in table.items()}
                for role, table in figures.items()
            }
            if levels in timed:
                timed_cpu_us = column(timed[levels], CPU.column)
                timed_cpu_us = timed_cpu_us[np.isfinite(timed_cpu_us)]
                treatment.cpu_us = float(np.median(timed_cpu_us)) if timed_cpu_us.size else math.nan
            treatments.append(treatment)
    return treatments


def _add_calls(
    sums: dict[str, list[float]], calls: Mapping[str, Sequence[float]], sent: int
) -> None:
    for name, (count, ns, _errors) in calls.items():
        call_sums = sums.setdefault(name, [0.0, 0.0])
        call_sums[0] += count / sent
        call_sums[1] += ns / 1000 / sent


def _add_figures(
    figures: dict[str, list[float]], row: Mapping[str, Any], role: str, processes: Mapping[str, Any]
) -> None:
    """Add the metrics of a run, summed over the process trees of a role.

    A metric is skipped if its value is unknown in any tree.
    """
    names = [name for name in processes if _role(name) == role]
    for stem in FIGURES:
        values = [row.get(f"{stem}.{process.replace('-', '.', 1)}") for process in names]
        if all(value is not None for value in values):
            figures.setdefault(stem, []).append(float(sum(v for v in values if v is not None)))
    kernel_ns = [processes[name].get("kernel_ns") for name in names]
    user_ns = [processes[name].get("user_ns") for name in names]
    if None not in kernel_ns and None not in user_ns and sum(kernel_ns) + sum(user_ns):
        share = sum(kernel_ns) / (sum(kernel_ns) + sum(user_ns))
        figures.setdefault("kernel_share", []).append(share)


def _role(process: str) -> str:
    return role_of_process(process) or service_of(process)


def differing(best: Traced, worst: Traced) -> list[tuple[str, tuple[float, float]]]:
    """Return (name, (best, worst)) of the calls with the largest difference per message."""
    best_calls, worst_calls = best.merged(), worst.merged()
    pairs = {
        name: (best_calls.get(name, 0.0), worst_calls.get(name, 0.0))
        for name in {*best_calls, *worst_calls}
    }
    ranked = sorted(pairs.items(), key=lambda pair: (-abs(pair[1][0] - pair[1][1]), pair[0]))
    return [(name, pair) for name, pair in ranked[:NAMED_MAX] if abs(pair[0] - pair[1]) > SHOWN_MIN]
