"""Compute system calls per message: of each treatment, and where treatments differ most.

Separate runs count system calls. Their times are not used: a treatment's efficiency is that of its
timed runs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.charts import Chart, rounded
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of
from wattwire.analysis.responses import CPU
from wattwire.model.deployment import role_of_process, service_of
from wattwire.model.derived import column
from wattwire.model.study import TRACED

STRACE = "strace"
KERNEL_US = "kernel_us_per_message"
WORKING_US, WAITING_US = "syscall_working_us_per_message", "syscall_waiting_us_per_message"
KERNEL_SHARE = "kernel_share"
NAMED_MAX = 3
"""Number of calls named as the difference between two treatments."""
SHOWN_MIN = 0.005
"""The table omits calls made less often per message; the sums include them."""
COLOURS = 6
"""Number of calls with a colour of their own in the chart."""
OTHER = "all others"
ONLY_TREATMENT = "the treatment"
GROUPED_BY = "language"
"""Factor within whose levels treatments are compared. If it does not vary, the first varied factor
other than the primary factor is used.
"""


@dataclass(frozen=True)
class Tree:
    """Means per message of the process trees of one role; None if unknown.

    `calls` is their number, and `kernel_us` their CPU time in the kernel, which is `kernel_percent`
    of their CPU time. `working_us` and `waiting_us` are the times in calls that work and that wait.
    """

    calls: float | None = None
    kernel_us: float | None = None
    kernel_percent: float | None = None
    working_us: float | None = None
    waiting_us: float | None = None


@dataclass(frozen=True)
class TreatmentCalls:
    """The process trees of a treatment, in the order of the roles."""

    treatment: tuple[str, ...]
    trees: tuple[Tree, ...]


@dataclass(frozen=True)
class Call:
    """A system call of a role in a treatment: its number and its time (µs) per message."""

    treatment: tuple[str, ...]
    role: str
    call: str
    calls: float
    us: float

    @property
    def us_each(self) -> float | None:
        """The time (µs) of one call; None without calls."""
        return self.us / self.calls if self.calls else None


@dataclass(frozen=True)
class Side:
    """A treatment with its CPU time (µs) and its number of system calls, per message."""

    title: str
    cpu_us: float
    calls: float


@dataclass(frozen=True)
class Difference:
    """A system call with its numbers per message in both treatments of a comparison."""

    call: str
    best: float
    worst: float


@dataclass(frozen=True)
class Comparison:
    """The most and the least efficient treatment at a level, and the calls that differ most.

    `level` and `level_title` are "" if all treatments are compared.
    """

    level: str
    level_title: str
    best: Side
    worst: Side
    calls: tuple[Difference, ...]

    @property
    def ratio(self) -> float | None:
        """The CPU time of the worst divided by that of the best; None if the latter is 0."""
        return self.worst.cpu_us / self.best.cpu_us if self.best.cpu_us > 0 else None


@dataclass(frozen=True)
class Syscalls:
    """The system calls of all treatments.

    `runs_planned` is the number of runs that count system calls. With `by_strace`, strace counted
    in at least one of them; `reasons` state why. `uncounted` calls did not fit in the tables.
    `factor` is the factor at whose levels treatments are compared, or "".
    """

    runs_planned: int = 0
    by_strace: bool = False
    reasons: tuple[str, ...] = ()
    uncounted: int = 0
    roles: tuple[str, ...] = ()
    treatments: tuple[TreatmentCalls, ...] = ()
    each: tuple[Call, ...] = ()
    factor: str = ""
    comparisons: tuple[Comparison, ...] = ()
    chart: Chart = Chart()
    shown_min: float = SHOWN_MIN


@dataclass(frozen=True)
class _Traced:
    """Means of one treatment over its runs, by role. Process trees of one role are summed.

    `calls` is role → call → [calls, µs] per message. `responses` is role → response → value.
    `cpu_us` is the CPU time (µs) per message of the timed runs, or NaN without timed runs.
    """

    treatment: tuple[str, ...]
    title: str
    calls: Mapping[str, Mapping[str, Sequence[float]]]
    responses: Mapping[str, Mapping[str, float]]
    cpu_us: float

    @property
    def total(self) -> float:
        """Number of calls per message of all process trees."""
        return sum(value[0] for calls in self.calls.values() for value in calls.values())

    @property
    def merged(self) -> dict[str, float]:
        """Call → calls per message, summed over all process trees."""
        totals: dict[str, float] = defaultdict(float)
        for calls in self.calls.values():
            for name, value in calls.items():
                totals[name] += value[0]
        return dict(totals)

    @property
    def side(self) -> Side:
        return Side(self.title, self.cpu_us, self.total)


def syscalls(evidence: Evidence) -> Syscalls:
    """Return the system calls per message; nothing if no planned run counts them."""
    planned = sum(entry.get("control") == TRACED for entry in evidence.plan)
    if evidence.imported or not planned:
        return Syscalls()
    documents = _documents(evidence)
    by_strace = [document for document in documents if document.get("way") == STRACE]
    reasons = (str(document["because"]) for document in by_strace if document.get("because"))
    traced = tuple(_traced(evidence, documents))
    # Sorted names place clients before servers.
    roles = tuple(sorted({role for of_treatment in traced for role in of_treatment.calls}))
    factor = _grouping_factor(evidence)
    return Syscalls(
        planned,
        bool(by_strace),
        tuple(dict.fromkeys(reasons)),
        _uncounted(documents),
        roles,
        tuple(
            TreatmentCalls(one.treatment, tuple(_tree(one, role) for role in roles))
            for one in traced
        ),
        tuple(_each(traced)),
        factor,
        tuple(_comparisons(evidence, traced, factor)),
        _chart(traced),
    )


def _documents(evidence: Evidence) -> list[dict[str, Any]]:
    """Return the system calls of each run that counts them, in the order of the frame."""
    return [
        evidence.reader.run(f"{row['run']}-{row['attempt']}").get("syscalls") or {}
        for row in evidence.traced.iter_rows(named=True)
    ]


def _uncounted(documents: Sequence[Mapping[str, Any]]) -> int:
    return round(
        sum(
            process.get("uncounted") or 0
            for document in documents
            for process in (document.get("processes") or {}).values()
        )
    )


def _tree(traced: _Traced, role: str) -> Tree:
    calls = traced.calls.get(role)
    if calls is None:
        return Tree()
    responses = traced.responses.get(role, {})
    share = responses.get(KERNEL_SHARE)
    return Tree(
        sum(value[0] for value in calls.values()),
        responses.get(KERNEL_US),
        None if share is None else 100 * share,
        responses.get(WORKING_US),
        responses.get(WAITING_US),
    )


def _each(treatments: Sequence[_Traced]) -> Iterator[Call]:
    """Yield the calls of each treatment and role, the most frequent first."""
    for traced in treatments:
        for role in sorted(traced.calls):
            in_order = sorted(traced.calls[role].items(), key=lambda pair: -pair[1][0])
            for name, (count, us) in in_order:
                if count >= SHOWN_MIN:
                    yield Call(traced.treatment, role.replace("_", " "), name, count, us)


# -- means over runs -------------------------------------------------------------------------


def _traced(evidence: Evidence, documents: Sequence[Mapping[str, Any]]) -> Iterator[_Traced]:
    """Yield the means of each treatment with counted runs, in the study's order."""
    frame = evidence.traced.with_row_index("place")
    timed = by_treatment(evidence, evidence.usable)
    for treatment, rows in by_treatment(evidence, frame).items():
        levels = {name: levels_of(rows, name)[0] for name in evidence.varied}
        sums: dict[str, dict[str, list[float]]] = {}
        responses: dict[str, dict[str, list[float]]] = {}
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
                _add_responses(responses.setdefault(role, {}), row, role, processes)
        if runs:
            yield _Traced(
                treatment,
                evidence.treatment_title(levels) or ONLY_TREATMENT,
                {
                    role: {name: [v / runs for v in value] for name, value in calls.items()}
                    for role, calls in sums.items()
                },
                {
                    role: {name: float(np.mean(values)) for name, values in table.items()}
                    for role, table in responses.items()
                },
                _cpu_us(timed.get(treatment)),
            )


def _cpu_us(frame: pl.DataFrame | None) -> float:
    """Return the median CPU time per message (µs) of timed runs; NaN without any."""
    if frame is None:
        return math.nan
    cpu_us = column(frame, CPU.column)
    cpu_us = cpu_us[np.isfinite(cpu_us)]
    return float(np.median(cpu_us)) if cpu_us.size else math.nan


def _add_calls(
    sums: dict[str, list[float]], calls: Mapping[str, Sequence[float]], sent: int
) -> None:
    for name, (count, ns, _errors) in calls.items():
        call_sums = sums.setdefault(name, [0.0, 0.0])
        call_sums[0] += count / sent
        call_sums[1] += ns / 1000 / sent


def _add_responses(
    responses: dict[str, list[float]],
    row: Mapping[str, Any],
    role: str,
    processes: Mapping[str, Any],
) -> None:
    """Add the responses of a run, summed over the process trees of a role.

    A response is skipped if its value is unknown in any tree.
    """
    names = [name for name in processes if _role(name) == role]
    for stem in (WORKING_US, WAITING_US, KERNEL_US):
        values = [row.get(f"{stem}.{process.replace('-', '.', 1)}") for process in names]
        if all(value is not None for value in values):
            responses.setdefault(stem, []).append(float(sum(v for v in values if v is not None)))
    kernel_ns = [processes[name].get("kernel_ns") for name in names]
    user_ns = [processes[name].get("user_ns") for name in names]
    if None not in kernel_ns and None not in user_ns and sum(kernel_ns) + sum(user_ns):
        share = sum(kernel_ns) / (sum(kernel_ns) + sum(user_ns))
        responses.setdefault(KERNEL_SHARE, []).append(share)


def _role(process: str) -> str:
    return role_of_process(process) or service_of(process)


# -- comparison ------------------------------------------------------------------------------


def _grouping_factor(evidence: Evidence) -> str:
    other_factors = [name for name in evidence.varied if name != evidence.primary]
    if GROUPED_BY in evidence.varied and len(evidence.varied) > 1:
        return GROUPED_BY
    return other_factors[0] if other_factors else ""


def _comparisons(
    evidence: Evidence, treatments: Sequence[_Traced], factor: str
) -> Iterator[Comparison]:
    """Yield the most and the least efficient of two or more treatments at each level of a factor.

    Without a factor, all treatments are compared.
    """
    groups: dict[str, list[_Traced]] = {}
    for traced in treatments:
        if math.isfinite(traced.cpu_us):
            level = traced.treatment[evidence.varied.index(factor)] if factor else ""
            groups.setdefault(level, []).append(traced)
    for level, members in groups.items():
        if len(members) > 1:
            best, worst = (extreme(members, key=lambda one: one.cpu_us) for extreme in (min, max))
            title = evidence.title(factor, level) if factor else ""
            yield Comparison(level, title, best.side, worst.side, tuple(_differing(best, worst)))


def _differing(best: _Traced, worst: _Traced) -> list[Difference]:
    """Return the calls with the largest difference per message."""
    best_calls, worst_calls = best.merged, worst.merged
    pairs = {
        name: (best_calls.get(name, 0.0), worst_calls.get(name, 0.0))
        for name in {*best_calls, *worst_calls}
    }
    ranked = sorted(pairs.items(), key=lambda pair: (-abs(pair[1][0] - pair[1][1]), pair[0]))
    return [
        Difference(name, *pair)
        for name, pair in ranked[:NAMED_MAX]
        if abs(pair[0] - pair[1]) > SHOWN_MIN
    ]


# -- chart -----------------------------------------------------------------------------------


def _chart(treatments: Sequence[_Traced]) -> Chart:
    """Return the segments of stacked bars with the calls per message; rare calls share one."""
    sums: dict[str, float] = defaultdict(float)
    for traced in treatments:
        for name, count in traced.merged.items():
            sums[name] += count / max(traced.total, SHOWN_MIN)  # equal weight per treatment
    frequent = sorted(sums, key=lambda name: -sums[name])[:COLOURS]
    points = []
    for traced in treatments:
        counts: dict[str, float] = defaultdict(float)
        for name, count in traced.merged.items():
            counts[name if name in frequent else OTHER] += count
        points += [
            {
                "treatment": traced.title,
                "colour": name,
                "value": rounded(counts[name]),
                "place": index,
            }
            for index, name in enumerate([*frequent, OTHER])
            if counts.get(name)
        ]
    return Chart(points, [*frequent, OTHER], rows=[traced.title for traced in treatments])
