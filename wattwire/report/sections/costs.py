"""Build the section on CPU and memory by role, measured energy and estimated energy."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire import stats
from wattwire.analysis.charts import (
    facet_factor,
    panel_of,
    panels,
    panels_per_row,
    titles_of,
    tone_of,
    treatment_of,
)
from wattwire.analysis.dataset import Evidence, by_treatment, window_seconds
from wattwire.analysis.metrics_by_role import sum_of
from wattwire.analysis.responses import CPU, MEMORY, Response, measured
from wattwire.model import words
from wattwire.model.derived import column, mean_of, messages_of_costs
from wattwire.report import figures
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Figure, Fold, Section, Table, Text, with_values
from wattwire.report.tables import costs_by_role, hosts
from wattwire.report.tables.costs_by_role import (
    OF_CELL,
    by_cell_and_role,
    group_columns,
    group_row,
    roles_in,
)
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrases
from wattwire.stats import Band

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
    part.parts.append(costs_by_role.table(evidence))
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
                "colour": tone_of(evidence, treatment),
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
    return PHRASES("absent", meters="; ".join(dict.fromkeys(reasons))) if reasons else ""


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
            group_row(evidence, group, frame)
            | _estimate_row(evidence, frame, group.role, lows, highs)
        )
    if not rows:
        return None
    return Table(
        "energy-estimate",
        PHRASES("estimate_table"),
        with_values(
            [
                *group_columns(evidence),
                Column("energy_j", "energy of one node, estimate", "estimate", "J"),
                Column("power_w", "power of one node, estimate", "estimate", "W"),
                Column("per_message_uj", "all nodes per message sent, estimate", "estimate", "µJ"),
            ],
            rows,
        ),
        rows,
        PHRASES("estimate_note"),
    )


def _estimate_row(
    evidence: Evidence, frame: pl.DataFrame, role: str, lows: list[str], highs: list[str]
) -> dict[str, Any]:
    low_j, high_j = mean_of(frame, lows), mean_of(frame, highs)
    window_s, sent = window_seconds(evidence, frame), messages_of_costs(frame)
    sent = np.where(sent > 0, sent, np.nan)
    all_low_j, all_high_j = (sum_of(evidence, frame, names, role) for names in (lows, highs))
    return {
        "energy_j": Band.of_means(low_j, high_j),
        "power_w": Band.of_means(low_j / window_s, high_j / window_s),
        "per_message_uj": Band.of_means(1e6 * all_low_j / sent, 1e6 * all_high_j / sent),
    }


PART = PagePart(90, lambda data: [section(data.evidence)], measured_only=True)
