"""Compute CPU time and memory of each cell and role, and the estimate of their energy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence, all_levels, levels_of, window_seconds
from wattwire.analysis.metrics_by_role import sum_of
from wattwire.analysis.responses import CPU
from wattwire.model import words
from wattwire.model.deployment import deployment_of_run, role_of_column
from wattwire.model.derived import (
    FloatArray,
    column,
    known_geometric_mean,
    mean_of,
    members,
    messages_of_costs,
)
from wattwire.stats import Band

OF_CELL = ("cell", "middleware", "language")
"""Factors whose level is part of a cell's name."""
APART_MAX = 24
"""Maximum number of combinations of levels for which all factors have rows of their own."""


@dataclass(frozen=True, order=True)
class Group:
    """Key of a row by role. `level` is the level of the primary factor as text.

    `others` are the levels of the factors without a column; "" if the row pools them.
    """

    pattern: str
    level: str
    others: str
    cell: str
    role: str


@dataclass(frozen=True)
class OfGroup:
    """The levels, the cell and the role of a row, and the number of its runs.

    `level` and `others` are titles, and `role` is None for all roles together.
    """

    pattern: str
    level: str
    others: str
    cell: str
    role: str | None
    runs: int


@dataclass(frozen=True)
class RoleCosts(OfGroup):
    """The costs of a role: `cpu_us` of all its processes, per message that the run sent.

    `processes` is the smallest and the largest number of processes of a run. `cpu_us_each` is the
    CPU time of one process per message that it handles itself, and `cpu_percent` its share of a
    core. CPU times per message are arithmetic means over the runs, the others geometric means.
    Ranges extend from the lowest to the highest run. A cost is None if it is unknown.
    """

    processes: tuple[int, int] | None = None
    cpu_us: float | None = None
    cpu_us_range: Band | None = None
    cpu_us_each: float | None = None
    cpu_percent: float | None = None
    memory_kib: float | None = None
    memory_kib_range: Band | None = None


@dataclass(frozen=True)
class Estimate(OfGroup):
    """The range of the estimated energy: of one node, its power, and of all nodes per message."""

    energy_j: Band | None = None
    power_w: Band | None = None
    per_message_uj: Band | None = None


def by_cell_and_role(evidence: Evidence, *prefixes: str) -> dict[Group, pl.DataFrame]:
    """Return the usable runs of each group, in planned order.

    A group is a pattern, level of the primary factor, cell and role, and in campaigns of few
    treatments also the levels of all other factors. A run belongs to each role
    with a value in a column `prefix.<role>.<index>`. Roles of different languages or middleware are
    separate groups, because their costs are not comparable.
    """
    frame = evidence.usable
    apart = factors_apart(evidence)
    planned = [
        evidence.treatment_title(dict(zip(apart, combination, strict=True)))
        for combination in itertools.product(*(evidence.factors[name] for name in apart))
    ]
    levels = [evidence.word(evidence.primary, v) for v in levels_of(frame, evidence.primary)]
    roles = {
        role: [column(frame, name) for name in names]
        for prefix in prefixes
        for role, names in roles_in(frame, prefix).items()
    }
    group_rows: dict[Group, list[int]] = {}
    for role, role_columns in roles.items():
        for index, run in enumerate(frame["run"].to_list()):
            if any(np.isfinite(values[index]) for values in role_columns):
                document = evidence.runs[run]
                pattern = str(all_levels(document).get("pattern", ""))
                treatment = {k: v for k, v in all_levels(document).items() if k in apart}
                others = evidence.treatment_title(treatment)
                cell = _cell_of(document, role)
                group = Group(pattern, levels[index], others, cell, role)
                group_rows.setdefault(group, []).append(index)
    order = {
        name: {
            evidence.word(name, v): position
            for position, v in enumerate(evidence.factors.get(name, ()))
        }
        for name in ("pattern", evidence.primary, "cell")
    }

    def sort_key(group: Group) -> tuple[Any, ...]:
        group_levels = (
            ("pattern", group.pattern),
            (evidence.primary, group.level),
            ("cell", group.cell),
        )
        positions = tuple(order[name].get(level, len(order[name])) for name, level in group_levels)
        place = planned.index(group.others) if group.others in planned else len(planned)
        return (*positions, group.pattern, group.cell, place, list(roles).index(group.role))

    return {group: frame[group_rows[group]] for group in sorted(group_rows, key=sort_key)}


def _cell_of(document: Mapping[str, Any], role: str) -> str:
    """Return the cell of a role, or the middleware of a service process such as a broker."""
    cells: Mapping[str, str] = document.get("cells") or {}
    if role in cells:
        return cells[role]
    return ", ".join(dict.fromkeys(cell.partition("/")[0] for cell in cells.values()))


def roles_in(frame: pl.DataFrame, prefix: str) -> dict[str, list[str]]:
    """Return the columns `prefix.role.index` of each role that have a value in `frame`.

    Other processes, such as services with columns `prefix.service`, follow the roles.
    """
    columns_by_role: dict[str, list[str]] = {}
    nodes = members(frame, prefix)
    others = sorted(
        name for name in frame.columns if name.startswith(f"{prefix}.") and name not in nodes
    )
    for name in [*nodes, *others]:
        if frame[name].null_count() < frame.height:
            owner = role_of_column(name, prefix) or name.removeprefix(f"{prefix}.")
            columns_by_role.setdefault(owner, []).append(name)
    return columns_by_role


def role_costs(evidence: Evidence) -> Iterator[RoleCosts]:
    """Yield the costs of each group, and those of all roles of the same runs if these are several.

    The rows of the same runs follow each other.
    """
    groups_of_runs: dict[tuple[Any, ...], list[tuple[Group, pl.DataFrame]]] = {}
    for group, frame in by_cell_and_role(evidence, "cpu_share", "memory_kib").items():
        key = (group.pattern, group.level, group.others, *frame["run"].to_list())
        groups_of_runs.setdefault(key, []).append((group, frame))
    for groups in groups_of_runs.values():
        yield from (_of_role(evidence, group, frame) for group, frame in groups)
        if len(groups) > 1:
            yield _of_all_roles(evidence, groups)


def _of_role(evidence: Evidence, group: Group, frame: pl.DataFrame) -> RoleCosts:
    shares, memories = (
        roles_in(frame, prefix).get(group.role, []) for prefix in ("cpu_share", "memory_kib")
    )
    share, memory = mean_of(frame, shares), mean_of(frame, memories)
    processes = np.sum([np.isfinite(column(frame, name)) for name in shares], axis=0)
    per_message = _cpu_us_per_message(evidence, frame, shares, group.role)
    each = per_message / _handled_share(evidence, frame, group.role)
    return RoleCosts(
        *_named(evidence, group),
        group.role,
        frame.height,
        (int(processes.min()), int(processes.max())),
        _mean_where_total(frame, per_message),
        _range(per_message),
        _mean_where_total(frame, each),
        known_geometric_mean(100 * share),
        known_geometric_mean(memory),
        _range(memory),
    )


def _of_all_roles(evidence: Evidence, groups: Sequence[tuple[Group, pl.DataFrame]]) -> RoleCosts:
    (first, frame), *_ = groups
    pattern, level, others, _ = _named(evidence, first)
    cells = dict.fromkeys(group.cell for group, _ in groups if "/" in group.cell)
    total = column(frame, CPU.column)
    return RoleCosts(
        pattern,
        level,
        others,
        ", ".join(cells),
        None,
        frame.height,
        cpu_us=_mean_where_total(frame, total),
        cpu_us_range=_range(total),
    )


def _named(evidence: Evidence, group: Group) -> tuple[str, str, str, str]:
    """Return pattern, title of the level, other levels and cell of a group."""
    primary = evidence.primary
    levels = {evidence.word(primary, v): v for v in evidence.factors.get(primary, ())}
    level = evidence.title(primary, levels.get(group.level, group.level))
    return group.pattern, level, group.others, group.cell


def estimates(evidence: Evidence) -> Iterator[Estimate]:
    """Yield the estimated energy of each group that has one."""
    for group, frame in by_cell_and_role(evidence, "energy_estimate_low_j").items():
        lows = roles_in(frame, "energy_estimate_low_j")[group.role]
        highs = roles_in(frame, "energy_estimate_high_j").get(group.role, [])
        low_j, high_j = mean_of(frame, lows), mean_of(frame, highs)
        window_s, sent = window_seconds(evidence, frame), messages_of_costs(frame)
        sent = np.where(sent > 0, sent, np.nan)
        all_low_j, all_high_j = (
            sum_of(evidence, frame, names, group.role) for names in (lows, highs)
        )
        yield Estimate(
            *_named(evidence, group),
            group.role,
            frame.height,
            Band.of_means(low_j, high_j),
            Band.of_means(low_j / window_s, high_j / window_s),
            Band.of_means(1e6 * all_low_j / sent, 1e6 * all_high_j / sent),
        )


def _cpu_us_per_message(
    evidence: Evidence, frame: pl.DataFrame, shares: list[str], role: str
) -> FloatArray:
    """Return the CPU time of all processes of a role per message sent (µs), shape (runs,).

    `shares` are the columns of the processes. The sum over all roles is the run's total.
    """
    sent, window_s = messages_of_costs(frame), window_seconds(evidence, frame)
    cores = sum_of(evidence, frame, shares, role)
    return np.asarray(1e6 * cores * window_s / np.where(sent > 0, sent, np.nan))


def _handled_share(evidence: Evidence, frame: pl.DataFrame, role: str) -> FloatArray:
    """Return the messages that the processes of a role handle, per message sent, shape (runs,).

    A client handles its own calls, so all clients together handle each call once. Each subscriber
    handles every message. The share is unknown (NaN) with several flows, whose rates may differ.
    """
    if evidence.study.flows:
        return np.full(frame.height, np.nan)
    return np.array([_handled(evidence.runs[run], role) for run in frame["run"].to_list()])


def _handled(document: Mapping[str, Any], role: str) -> float:
    deployment = deployment_of_run(document)
    numbers = {node.node for node in deployment.nodes if node.role == role}
    passes = [len(numbers.intersection(flow.nodes)) for flow in deployment.flows]
    return sum(passes) / len(passes) if numbers and any(passes) else 1.0


def _mean_where_total(frame: pl.DataFrame, values: FloatArray) -> float | None:
    """Return the mean over the runs whose total is known, so that the roles add up to it."""
    total = column(frame, CPU.column)
    known = np.isfinite(values) & (np.isfinite(total) if np.isfinite(total).any() else True)
    return float(np.mean(values[known])) if known.any() else None


def factors_apart(evidence: Evidence) -> list[str]:
    """Return the factors without a column whose levels have rows of their own.

    These are all such factors in a campaign of few combinations of levels. In others, rows pool.
    """
    combinations = math.prod(len(evidence.factors.get(name, ())) for name in evidence.varied)
    return _without_column(evidence) if combinations <= APART_MAX else []


def _without_column(evidence: Evidence) -> list[str]:
    shown = {"pattern", evidence.primary, *OF_CELL}
    return [name for name in evidence.varied if name not in shown]


def pooled_factors(evidence: Evidence) -> tuple[str, ...]:
    """Return the titles of the factors over which each row pools."""
    pooled = [] if factors_apart(evidence) else _without_column(evidence)
    return tuple(words.factor_title(name) for name in pooled)


def _range(values: FloatArray) -> Band | None:
    finite = values[np.isfinite(values)]
    return Band(float(finite.min()), float(finite.max())) if finite.size else None
