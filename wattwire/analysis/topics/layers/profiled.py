"""Compute the layers of a study's treatments from the runs that record them, and their cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.carried import carried
from wattwire.analysis.charts import Chart, rounded
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.responses import LATENCY_P50
from wattwire.analysis.topics.processes.executed import Value, mean_of
from wattwire.model.layers import LAYERS
from wattwire.model.study import PROFILED
from wattwire.model.treatment import shared_levels
from wattwire.model.words import listed_first

NS_PER_US = 1000.0
PAIRS_MIN = 3
CHART_ROWS_MAX = 12
RUNS_NAMED = 6
ONLY_TREATMENT = "all runs"
Ratio = stats.Interval | stats.TooFew | stats.NotComputable | float | None


@dataclass(frozen=True)
class TreatmentLayer:
    """A layer of a treatment. `category` is the part of the paper's figure 6 that contains it.

    `time_us` is the mean over the runs of each run's median; `share` is its part of their sum.
    """

    treatment: str
    layer: str
    category: str
    time_us: Value
    share_percent: float
    runs: int


@dataclass(frozen=True)
class RecordingCost:
    """The p50 of a treatment's recording runs over that of their timed neighbours."""

    treatment: str
    ratio: Ratio
    pairs: int


@dataclass(frozen=True)
class Gap:
    """Treatments whose layers cannot be recorded, and the reason.

    `shared` is the title of the levels that all of them have; "" if none.
    """

    reason: str
    treatments: tuple[str, ...]
    shared: str = ""


@dataclass(frozen=True)
class Profiled:
    """The layers of a study's treatments. `planned` is the number of runs that record them."""

    planned: int = 0
    treatments: tuple[TreatmentLayer, ...] = ()
    costs: tuple[RecordingCost, ...] = ()
    gaps: tuple[Gap, ...] = ()
    invalid: tuple[str, ...] = ()
    chart: Chart = field(default_factory=Chart)


def profiled(evidence: Evidence) -> Profiled:
    """Return the layers of a study with `plan.layer_runs`; empty for others."""
    if evidence.imported:
        return Profiled()
    planned = sum(entry.get("control") == PROFILED for entry in evidence.plan)
    gaps = tuple(_gaps(evidence))
    if not planned:
        return Profiled(gaps=gaps)
    frame = evidence.profiled
    is_valid = frame["verdict"] == "valid"
    valid = frame.filter(is_valid)
    rows = tuple(_treatments(evidence, valid))
    return Profiled(
        planned,
        rows,
        tuple(_costs(evidence, valid)),
        gaps,
        tuple(invalid_texts(evidence, frame.filter(~is_valid))),
        _chart(rows),
    )


def invalid_texts(evidence: Evidence, frame: pl.DataFrame) -> Iterable[str]:
    """Yield a text per reason, with the first runs that it excludes."""
    runs_of: dict[str, list[str]] = {}
    for row in frame.iter_rows(named=True):
        for reason in run_document(evidence, row).get("reasons", ()):
            runs_of.setdefault(str(reason["detail"]), []).append(row["run"])
    for detail, runs in runs_of.items():
        yield f"{listed_first(runs, RUNS_NAMED)}: {detail}"


def run_document(evidence: Evidence, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document of the run of a row."""
    return evidence.reader.run(f"{row['run']}-{row['attempt']}")


def _gaps(evidence: Evidence) -> Iterable[Gap]:
    levels_of: dict[str, dict[str, Mapping[str, Any]]] = {}
    for entry in evidence.plan:
        if entry.get("layer_gap"):
            title = evidence.treatment_title(entry["treatment"]) or ONLY_TREATMENT
            levels_of.setdefault(str(entry["layer_gap"]), {})[title] = entry["treatment"]
    for reason, levels in levels_of.items():
        shared = evidence.treatment_title(shared_levels([*levels.values()]))
        yield Gap(reason, tuple(levels), shared)


def _treatments(evidence: Evidence, frame: pl.DataFrame) -> Iterable[TreatmentLayer]:
    """Yield the layers of each treatment. A run's value is the mean of its hops' medians."""
    for key, rows in by_treatment(evidence, frame).items():
        title = evidence.title_of_key(key) or ONLY_TREATMENT
        values: dict[str, list[float]] = {}
        for row in rows.iter_rows(named=True):
            for name, time_us in medians_us(run_document(evidence, row)).items():
                values.setdefault(name, []).append(time_us)
        means_us = {name: float(np.mean(times)) for name, times in values.items()}
        total_us = sum(means_us.values())
        for layer in LAYERS:
            if layer.name in values:
                yield TreatmentLayer(
                    title,
                    layer.title,
                    layer.category,
                    mean_of(values[layer.name]),
                    100 * means_us[layer.name] / total_us if total_us else math.nan,
                    len(values[layer.name]),
                )


def medians_us(document: Mapping[str, Any]) -> dict[str, float]:
    """Return layer → mean over the hops of the median time (µs) of a run."""
    hops = [row for row in document["layers"]["topics"] if row["deliveries"]]
    medians = {
        layer.name: [hop["layer_medians_ns"][layer.name] for hop in hops] for layer in LAYERS
    }
    return {
        name: float(np.mean(known)) / NS_PER_US
        for name, times_ns in medians.items()
        if (known := [time_ns for time_ns in times_ns if time_ns is not None])
    }


def _costs(evidence: Evidence, frame: pl.DataFrame) -> Iterable[RecordingCost]:
    timed = by_treatment(evidence, evidence.usable)
    for key, rows in by_treatment(evidence, frame).items():
        title = evidence.title_of_key(key) or ONLY_TREATMENT
        plain = _p50_by_block(timed[key]) if key in timed else {}
        recorded = _p50_by_block(rows)
        ratios = [recorded[block] / plain[block] for block in recorded if block in plain]
        yield RecordingCost(title, _ratio(ratios), len(ratios))


def _p50_by_block(rows: pl.DataFrame) -> dict[int, float]:
    """Return block → p50 (µs), without values that have no ratio."""
    values = carried(rows, LATENCY_P50.column)
    pairs = zip(rows["block"].to_list(), values, strict=True)
    return {block: float(v) for block, v in pairs if math.isfinite(v) and v > 0}


def _ratio(ratios: Sequence[float]) -> Ratio:
    if len(ratios) >= PAIRS_MIN:
        return stats.geometric_mean(ratios)
    return math.exp(float(np.mean(np.log(ratios)))) if ratios else None


def _chart(rows: Sequence[TreatmentLayer]) -> Chart:
    """Return stacked bars with a row per treatment and a segment per layer."""
    shown = list(dict.fromkeys(row.treatment for row in rows))[:CHART_ROWS_MAX]
    titles = [layer.title for layer in LAYERS]
    points = [
        {
            "level": row.treatment, "colour": row.layer, "place": titles.index(row.layer),
            "value": rounded(_estimate(row.time_us)), "panel": "", "runs": row.runs,
        }
        for row in rows
        if row.treatment in shown
    ]  # fmt: skip
    present = {point["colour"] for point in points}
    colours = [title for title in titles if title in present]
    return Chart(points=points, colours=colours, rows=shown, panels=[""])


def _estimate(value: Value) -> float:
    return value.estimate if isinstance(value, stats.Interval) else float(value or 0.0)
