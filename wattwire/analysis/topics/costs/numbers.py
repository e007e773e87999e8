"""Compute CPU time and memory by role and host, measured energy and estimated energy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.charts import (
    Chart,
    Point,
    facet_factor,
    panel_of,
    panels,
    panels_per_row,
    rounded,
    titles_of,
    tone_of,
    treatment_of,
)
from wattwire.analysis.dataset import Evidence, by_treatment, window_seconds
from wattwire.analysis.host_facts import meters_of
from wattwire.analysis.responses import CPU, MEMORY, Response, measured
from wattwire.analysis.topics.costs.by_host import ByHost, by_host
from wattwire.analysis.topics.costs.by_role import (
    OF_CELL,
    Estimate,
    RoleCosts,
    estimates,
    factors_apart,
    pooled_factors,
    role_costs,
)
from wattwire.model import words
from wattwire.model.derived import column, known_mean, messages_of_costs

POWER, SOURCE, TOO_SHORT = "power_window_w", "energy_source", "energy_too_short"
JoulesPerMessage = stats.Interval | stats.TooFew | stats.NotComputable | stats.BelowResolution


@dataclass(frozen=True)
class RunsChart:
    """The values of a response in all valid runs, and their geometric mean per group."""

    id: str
    title: str
    unit: str
    chart: Chart


@dataclass(frozen=True)
class Power:
    """Measured power and energy of a treatment, as means over its runs; None if unknown.

    Joules per message are computed for each block.
    """

    treatment: tuple[str, ...]
    runs: int
    power_machine_w: float | None
    power_silent_w: float | None
    power_window_w: float | None
    energy_standing_j: float | None
    energy_message_j: float | None
    energy_total_j: float | None
    j_per_sent: JoulesPerMessage
    j_per_delivered: JoulesPerMessage


@dataclass(frozen=True)
class AbsentMeter:
    """A meter that could not read its quantity, with the reason."""

    name: str
    reason: str


@dataclass(frozen=True)
class OtherSource:
    """A source that only some runs have, so they have no power here."""

    source: str
    runs: int


@dataclass(frozen=True)
class Costs:
    """The costs of all treatments and roles; `is_measured` is false for imported data.

    `primary` is the primary factor if the rows by role have its level in a column, else "". They
    have the levels of the other factors (`has_others`), or pool over the factors in `pooled`. Runs
    above the capacity, whose costs per message are void, are only in the charts.
    """

    is_measured: bool = False
    runs: int = 0
    charts: tuple[RunsChart, ...] = ()
    primary: str = ""
    primary_title: str = ""
    has_others: bool = False
    pooled: tuple[str, ...] = ()
    roles: tuple[RoleCosts, ...] = ()
    hosts: ByHost = ByHost()
    is_energy_measured: bool = False
    powers: tuple[Power, ...] = ()
    other_sources: tuple[OtherSource, ...] = ()
    too_short: tuple[str, ...] = ()
    absent_meters: tuple[AbsentMeter, ...] = ()
    estimates: tuple[Estimate, ...] = ()


def costs(evidence: Evidence) -> Costs:
    """Return the costs of the valid runs."""
    if evidence.imported or not evidence.usable.height:
        return Costs(is_measured=not evidence.imported)
    primary = "" if evidence.primary in OF_CELL else evidence.primary
    is_void = pl.Series(carried.void(evidence.usable, CPU.column))
    within_capacity = replace(evidence, usable=evidence.usable.filter(~is_void))
    return Costs(
        True,
        evidence.usable.height,
        tuple(
            runs_chart(evidence, response)
            for response in (CPU, MEMORY)
            if measured(evidence.usable, response)
        ),
        primary,
        words.factor_title(primary),
        bool(factors_apart(evidence)),
        pooled_factors(evidence),
        tuple(role_costs(within_capacity)),
        by_host(within_capacity),
        bool(np.isfinite(column(evidence.usable, POWER)).any()),
        tuple(powers(within_capacity)),
        tuple(_other_sources(evidence.usable)),
        tuple(_too_short(evidence.usable)),
        tuple(dict.fromkeys(_absent_meters(evidence))),
        tuple(estimates(within_capacity)),
    )


def runs_chart(evidence: Evidence, response: Response) -> RunsChart:
    """Return the chart of a response with a point per valid run, by level of the primary factor."""
    across = facet_factor(evidence)
    # Memory depends almost only on the cell, so panels by other factors would look alike.
    if response is MEMORY and across not in OF_CELL:
        across = None
    frame = evidence.usable
    values = column(frame, response.column)
    points: list[Point] = []
    for run, value in zip(frame["run"].to_list(), values, strict=True):
        if not value > 0 or np.isinf(value):
            continue
        treatment = treatment_of(evidence, run)
        points.append(
            {
                "value": rounded(float(value)),
                "run": run,
                "treatment": evidence.treatment_title(treatment),
                "colour": tone_of(evidence, treatment),
                "panel": panel_of(evidence, treatment, across),
            }
        )
    _add_group_means(points)
    chart = Chart(
        points,
        titles_of(evidence, evidence.primary),
        words.factor_title(evidence.primary),
        panels=panels(evidence, across, [point["panel"] for point in points]),
        per_row=panels_per_row(evidence),
    )
    return RunsChart(response.column.replace("_", "-"), response.title, response.unit, chart)


def _add_group_means(points: list[Point]) -> None:
    """Add to each point, as `centre`, the geometric mean of its group."""
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        groups.setdefault((point["colour"], point["panel"]), []).append(point)
    for group in groups.values():
        mean = float(np.exp(np.mean(np.log([point["value"] for point in group]))))
        for point in group:
            point["centre"] = rounded(mean)


def powers(evidence: Evidence) -> Iterator[Power]:
    """Yield the measured energy of each treatment; nothing if no meter measured energy."""
    if not np.isfinite(column(evidence.usable, POWER)).any():
        return
    for treatment, frame in by_treatment(evidence, evidence.usable).items():
        above_silent_w = column(frame, POWER) - column(frame, "power_silent_w")
        messages_sent = column(frame, "sent")
        receivers = column(frame, "expected") / np.where(messages_sent > 0, messages_sent, np.nan)
        undelivered = column(frame, "loss_share") + np.nan_to_num(column(frame, "failed_share"))
        delivered = messages_of_costs(frame) * receivers * (1.0 - undelivered)
        delivered_hz = delivered / window_seconds(evidence, frame)
        yield Power(
            treatment,
            frame.height,
            known_mean(column(frame, "power_machine_w")),
            known_mean(column(frame, "power_silent_w")),
            known_mean(column(frame, POWER)),
            known_mean(column(frame, "energy_standing_j")),
            known_mean(column(frame, "energy_message_j")),
            known_mean(column(frame, "energy_total_j")),
            stats.joules_per_message(
                above_silent_w.tolist(), column(frame, "rate_hz_achieved").tolist()
            ),
            stats.joules_per_message(above_silent_w.tolist(), delivered_hz.tolist()),
        )


def _other_sources(frame: pl.DataFrame) -> Iterator[OtherSource]:
    """Yield the sources whose powers the summary leaves out, with the number of their runs."""
    if SOURCE in frame.columns and POWER in frame.columns:
        without = frame.filter(pl.col(SOURCE).is_not_null() & pl.col(POWER).is_null())
        counts = without[SOURCE].value_counts().sort(SOURCE)
        yield from (OtherSource(*row) for row in counts.iter_rows())


def _too_short(frame: pl.DataFrame) -> Iterator[str]:
    """Yield each reason for which a meter's source was skipped."""
    if TOO_SHORT in frame.columns:
        yield from sorted(frame[TOO_SHORT].drop_nulls().unique())


def _absent_meters(evidence: Evidence) -> Iterator[AbsentMeter]:
    """Yield the absent meters that would be a source of energy."""
    for _, meter in meters_of(evidence.reader.machine):
        if meter.get("state") == "absent" and any(
            quantity.get("rank") is not None for quantity in meter["quantities"]
        ):
            yield AbsentMeter(meter["name"], str(meter.get("reason")))
