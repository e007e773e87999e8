"""Build the section on CPU and memory by role, measured energy and estimated energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire import stats
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment, levels_of, window_seconds
from wattwire.analysis.responses import CPU, MEMORY, Response, measured
from wattwire.model import words
from wattwire.model.deployment import role_of_column
from wattwire.model.derived import column, mean_of, members, messages_of_costs
from wattwire.report import figures
from wattwire.report.figures.panels import (
    facet_factor,
    panel_of,
    panels,
    panels_per_row,
    titles_of,
    treatment_of,
)
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Band, Column, Figure, Fold, Section, Table, Text
from wattwire.report.tables import hosts
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "costs",
    {
        "title": "CPU, memory and energy",
        "none": "No valid run has a measured cost.",
        # The figure of runs.
        "figure": "{response:capital}, every valid run",
        "caption": (
            "Each dot is a run. Each black bar is the geometric mean of a group of runs. The "
            "vertical position of a dot depends on its rank and only separates the dots."
        ),
        "axis": "{response} ({unit}, log scale)",
        # CPU and memory.
        "by_role": "CPU and memory by cell and role",
        "by_role_note": (
            "The value of a run is the mean over the nodes of the role. The middle value is the "
            "geometric mean over the valid runs of the row{pooled}. The range extends from the "
            "lowest to the highest run and is not a confidence interval."
        ),
        "pooled": ", which pool {factors:listed}",
        # Energy.
        "no_energy": ("There are no energy results, because no meter measured energy. {absent}"),
        "absent": "Absent: {meters}.",
        "energy": "Measured energy",
        "energy_note": (
            "Standing energy = (silent power − machine power) × window length; message energy = "
            "(power in the window − silent power) × window length; the total is the sum of both. "
            "Joules per message are computed for each block. With three or more blocks, the table "
            "gives their mean with a 95 % t interval. If the mean is below the resolution, the "
            "table gives only an upper limit."
        ),
        "estimate": "Modelled energy: an estimate, not a measurement",
        "estimate_warning": (
            "This estimate is CPU time multiplied by an assumed range of energy per CPU second. It "
            "adds no information to CPU time. The range is an assumption, not a confidence "
            "interval. No test, ranking or answer on this page uses this estimate."
        ),
        "estimate_table": "Estimated energy by cell and role",
        "estimate_note": (
            "Each range is a mean over the runs of the row. It extends from the lowest to the "
            "highest assumed energy per CPU second."
        ),
    },
)

FloatArray = NDArray[np.float64]
OF_CELL = ("cell", "middleware", "language")
"""Factors whose level is part of a cell's name."""


def section(evidence: Evidence) -> Section:
    """Return the section on CPU, memory and energy."""
    part = Section("costs", PHRASES("title"))
    if evidence.usable.height == 0:
        part.has_no_data = True
        part.parts.append(Text(PHRASES("none"), "warning"))
        return part
    for response in (CPU, MEMORY):
        if measured(evidence.usable, response):
            part.parts.append(runs_figure(evidence, response))
    part.parts.append(_roles_table(evidence))
    if by_host := hosts.fold(evidence):
        part.parts.append(by_host)
    part.parts.extend(_energy(evidence))
    return part


def runs_figure(evidence: Evidence, response: Response) -> Figure:
    """Return a figure of a response with one dot per valid run, coloured by the primary factor."""
    across = facet_factor(evidence)
    # Memory depends almost only on the cell, so panels by other factors would look alike.
    if response is MEMORY and across not in OF_CELL:
        across = None
    frame = evidence.usable
    values = column(frame, response.column)
    points: list[dict[str, Any]] = []
    for run, value in zip(frame["run"].to_list(), values, strict=True):
        if not value > 0 or np.isinf(value):
            continue
        treatment = treatment_of(evidence, run)
        points.append(
            {
                "value": figures.rounded(float(value)),
                "run": run,
                "treatment": evidence.treatment_title(treatment),
                "colour": evidence.title(evidence.primary, treatment.get(evidence.primary)),
                "panel": panel_of(evidence, treatment, across),
            }
        )
    _add_group_means(points)
    return Figure(
        f"runs-{response.column.replace('_', '-')}",
        PHRASES("figure", response=response.title),
        PHRASES("caption"),
        figures.runs_chart(
            points,
            titles_of(evidence, evidence.primary),
            words.factor_title(evidence.primary),
            panels(evidence, across, [p["panel"] for p in points]),
            panels_per_row(evidence),
            PHRASES("axis", response=response.title, unit=response.unit),
        ),
    )


def _add_group_means(points: list[dict[str, Any]]) -> None:
    """Add to each point, as `centre`, the geometric mean of its group."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for point in points:
        groups.setdefault((point["colour"], point["panel"]), []).append(point)
    for group in groups.values():
        mean = float(np.exp(np.mean(np.log([point["value"] for point in group]))))
        for point in group:
            point["centre"] = figures.rounded(mean)


@dataclass(frozen=True, order=True)
class Group:
    """Key of a row in a table by role. `level` is the level of the primary factor as text."""

    pattern: str
    level: str
    cell: str
    role: str


def by_cell_and_role(evidence: Evidence, *prefixes: str) -> dict[Group, pl.DataFrame]:
    """Return the valid runs of each group, in planned order.

    A group is a pattern, level of the primary factor, cell and role. A run belongs to each role
    with a value in a column `prefix.<role>.<index>`. Roles of different languages or middleware are
    separate groups, because their costs are not comparable.
    """
    frame = evidence.usable
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
                cell = _cell_of(document, role)
                group_rows.setdefault(Group(pattern, levels[index], cell, role), []).append(index)
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
        return (*positions, group.pattern, group.cell, list(roles).index(group.role))

    return {group: frame[group_rows[group]] for group in sorted(group_rows, key=sort_key)}


def _cell_of(document: Mapping[str, Any], role: str) -> str:
    """Return the cell of a role, or the middleware of a service process such as a broker."""
    cells: Mapping[str, str] = document.get("cells") or {}
    if role in cells:
        return cells[role]
    return ", ".join(dict.fromkeys(cell.partition("/")[0] for cell in cells.values()))


def _group_columns(evidence: Evidence) -> list[Column]:
    """Return the columns of a group, without the primary factor if the cell's name contains it."""
    primary = [Column("level", words.factor_title(evidence.primary), factor=evidence.primary)]
    return [
        Column("pattern", "pattern", factor="pattern"),
        *([] if evidence.primary in ("", *OF_CELL) else primary),
        Column("cell", "cell"),
        Column("role", "role"),
        Column("runs", "runs", "measured"),
    ]


def _group_row(evidence: Evidence, group: Group, frame: pl.DataFrame) -> dict[str, Any]:
    primary = evidence.primary
    levels = {evidence.word(primary, v): v for v in evidence.factors.get(primary, ())}
    level = levels.get(group.level, group.level)
    return {**asdict(group), "level": evidence.title(primary, level), "runs": frame.height}


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


def _roles_table(evidence: Evidence) -> Table:
    rows = []
    for group, frame in by_cell_and_role(evidence, "cpu_share", "memory_kib").items():
        share = mean_of(frame, roles_in(frame, "cpu_share").get(group.role, []))
        memory = mean_of(frame, roles_in(frame, "memory_kib").get(group.role, []))
        sent = messages_of_costs(frame)
        window_s = window_seconds(evidence, frame)
        per_message = 1e6 * share * window_s / np.where(sent > 0, sent, np.nan)
        rows.append(
            _group_row(evidence, group, frame)
            | {
                "cpu_us": _geometric_mean(per_message),
                "cpu_us_range": _range(per_message),
                "cpu_percent": _geometric_mean(100 * share),
                "memory_kib": _geometric_mean(memory),
                "memory_kib_range": _range(memory),
            }
        )
    return Table(
        "costs-by-role",
        PHRASES("by_role"),
        [
            *_group_columns(evidence),
            Column("cpu_us", "CPU per message sent", "measured", "µs"),
            Column("cpu_us_range", "lowest – highest run", "measured", "µs"),
            Column("cpu_percent", "CPU of one core", "measured", "%"),
            Column("memory_kib", "memory", "measured", "KiB", 4),
            Column("memory_kib_range", "lowest – highest run", "measured", "KiB", 4),
        ],
        rows,
        PHRASES("by_role_note", pooled=_pooled(evidence)),
    )


def _pooled(evidence: Evidence) -> str:
    """Return a clause that names the factors without a column, over which each row pools."""
    shown = {"pattern", evidence.primary, *OF_CELL}
    names = [words.factor_title(name) for name in evidence.varied if name not in shown]
    return PHRASES("pooled", factors=names) if names else ""


def _geometric_mean(values: FloatArray) -> float | None:
    positive = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.mean(np.log(positive)))) if positive.size else None


def _range(values: FloatArray) -> Band | None:
    finite = values[np.isfinite(values)]
    return Band(float(finite.min()), float(finite.max())) if finite.size else None


def _energy(evidence: Evidence) -> list[Any]:
    parts: list[Any] = []
    if _has_values(evidence.usable, "power_window_w"):
        parts.append(_powers_table(evidence))
    else:
        parts.append(Text(PHRASES("no_energy", absent=_absent_meters(evidence))))
    estimate = _estimate_table(evidence)
    if estimate is not None:
        parts.append(
            Fold(PHRASES("estimate"), [Text(PHRASES("estimate_warning"), "warning"), estimate])
        )
    return parts


def _absent_meters(evidence: Evidence) -> str:
    reasons = [
        f"{meter['name']}: {meter.get('reason')}"
        for host in evidence.reader.machine.get("hosts", {}).values()
        for meter in host.get("meters", [])
        if meter.get("state") == "absent"
    ]
    return PHRASES("absent", meters="; ".join(reasons)) if reasons else ""


def _has_values(frame: pl.DataFrame, name: str) -> bool:
    return bool(np.isfinite(column(frame, name)).any())


def _powers_table(evidence: Evidence) -> Table:
    rows = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        silent_w, window_w = column(frame, "power_silent_w"), column(frame, "power_window_w")
        row: dict[str, Any] = dict(zip(evidence.varied, key, strict=True))
        row["runs"] = frame.height
        for name in (
            "power_machine_w",
            "power_silent_w",
            "power_window_w",
            "energy_standing_j",
            "energy_message_j",
            "energy_total_j",
        ):
            finite = column(frame, name)
            finite = finite[np.isfinite(finite)]
            row[name] = float(np.mean(finite)) if finite.size else None
        j_per_sent = stats.joules_per_message(
            [float(v) for v in window_w - silent_w],
            [float(v) for v in column(frame, "rate_hz_achieved")],
        )
        messages_sent = column(frame, "sent")
        receivers = column(frame, "expected") / np.where(messages_sent > 0, messages_sent, np.nan)
        undelivered = column(frame, "loss_share") + np.nan_to_num(column(frame, "failed_share"))
        delivered = messages_of_costs(frame) * receivers * (1.0 - undelivered)
        delivered_hz = delivered / window_seconds(evidence, frame)
        row["j_per_sent"] = j_per_sent
        row["j_per_delivered"] = stats.joules_per_message(
            [float(v) for v in window_w - silent_w], [float(v) for v in delivered_hz]
        )
        rows.append(row)
    columns = factor_columns(evidence)
    columns += [
        Column("runs", "runs", "measured"),
        Column("power_machine_w", "machine", "measured", group="power (W)"),
        Column("power_silent_w", "connected, silent", "measured", group="power (W)"),
        Column("power_window_w", "window", "measured", group="power (W)"),
        Column("energy_standing_j", "standing", "measured", group="energy of a window (J)"),
        Column("energy_message_j", "messages", "measured", group="energy of a window (J)"),
        Column("energy_total_j", "total", "measured", group="energy of a window (J)"),
        Column("j_per_sent", "sent", "measured", group="energy per message (J)"),
        Column("j_per_delivered", "delivered", "measured", group="energy per message (J)"),
    ]
    return Table(
        "energy-measured",
        PHRASES("energy"),
        columns,
        rows,
        PHRASES("energy_note"),
    )


def _estimate_table(evidence: Evidence) -> Table | None:
    rows = []
    for group, frame in by_cell_and_role(evidence, "energy_estimate_low_j").items():
        lows = roles_in(frame, "energy_estimate_low_j")[group.role]
        highs = roles_in(frame, "energy_estimate_high_j").get(group.role, [])
        rows.append(
            _group_row(evidence, group, frame) | _estimate_row(evidence, frame, lows, highs)
        )
    if not rows:
        return None
    return Table(
        "energy-estimate",
        PHRASES("estimate_table"),
        [
            *_group_columns(evidence),
            Column("energy_j", "energy of one node, estimate", "estimate", "J"),
            Column("power_w", "power of one node, estimate", "estimate", "W"),
            Column("per_message_uj", "per message sent, estimate", "estimate", "µJ"),
        ],
        rows,
        PHRASES("estimate_note"),
    )


def _estimate_row(
    evidence: Evidence, frame: pl.DataFrame, lows: list[str], highs: list[str]
) -> dict[str, Any]:
    low_j, high_j = mean_of(frame, lows), mean_of(frame, highs)
    window_s, sent = window_seconds(evidence, frame), messages_of_costs(frame)
    sent = np.where(sent > 0, sent, np.nan)
    return {
        "energy_j": Band.of_means(low_j, high_j),
        "power_w": Band.of_means(low_j / window_s, high_j / window_s),
        "per_message_uj": Band.of_means(1e6 * low_j / sent, 1e6 * high_j / sent),
    }


PART = PagePart(90, lambda data: [section(data.evidence)], measured_only=True)
