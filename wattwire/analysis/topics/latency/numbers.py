"""Compute the distribution and the percentiles of latency, which include losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import not_compared
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
from wattwire.analysis.dataset import Evidence, all_levels, levels_run
from wattwire.analysis.latency import Series
from wattwire.analysis.topics.latency.clock_terms import (
    ClockDifference,
    Clocks,
    clock_differences,
    host_clocks,
)
from wattwire.analysis.topics.latency.due_time import LateSenders, Outage, late_senders, outages
from wattwire.analysis.topics.latency.percentiles import Percentiles, percentiles
from wattwire.analysis.topics.rates.numbers import delivered_kind
from wattwire.model import words
from wattwire.model.derived import FloatArray

OPEN, CLOSED, BOTH = "open", "closed", "both"
POINTS_PER_CURVE_MAX, POINTS_PER_CURVE_MIN, POINTS_PER_PAGE = 400, 100, 20_000


@dataclass(frozen=True)
class Refused:
    """Runs whose one-way latencies are not known, because the clocks' error is too large."""

    runs: int = 0
    treatments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Curves:
    """The empirical distributions of latency, which pool over the factors with titles `pooled`.

    `points_max` is the number of points to which at least one is downsampled; None without any.
    """

    chart: Chart
    pooled: tuple[str, ...]
    points_max: int | None


@dataclass(frozen=True)
class Latency:
    """The latencies of all treatments.

    `loops` is OPEN, CLOSED or BOTH. `runs` is the number of runs with latencies, of which
    `runs_shown` are not refused. With several `flows`, there are no curves and no percentiles,
    because one over the messages of several flows describes none of them. `undated` losses have no
    recorded send time.
    """

    has_messages: bool = False
    runs: int = 0
    runs_shown: int = 0
    loops: str = OPEN
    clocks: Clocks = Clocks()
    refused: Refused = Refused()
    flows: tuple[str, ...] = ()
    curves: Curves | None = None
    percentiles: tuple[Percentiles, ...] = ()
    delivered: str = ""
    late: LateSenders | None = None
    outages: tuple[Outage, ...] = ()
    unsent: int = 0
    undated: int = 0
    differences: tuple[ClockDifference, ...] = ()

    @property
    def has_unsent(self) -> bool:
        """Whether a treatment has messages that were never sent."""
        return any(row.unsent for row in self.percentiles)

    @property
    def has_late(self) -> bool:
        """Whether a treatment's latency differs from the time since the send call."""
        return any(row.is_late for row in self.percentiles)

    @property
    def has_band(self) -> bool:
        """Whether a treatment's latencies depend on several clocks."""
        return any(row.band_us is not None for row in self.percentiles)


def latency(evidence: Evidence, series: Mapping[str, Series]) -> Latency:
    """Return the latencies of each treatment. `series` maps each valid run to its latencies."""
    if not evidence.has_messages:
        return Latency()
    refused = _refused(evidence)
    known = {run: of_run for run, of_run in series.items() if of_run.values_us.size}
    shown = {run: of_run for run, of_run in known.items() if run not in refused}
    flows = tuple(flow.name for flow in evidence.study.flows)
    is_of_one_flow = bool(shown) and len(flows) < 2
    unsent = sum(of_run.unsent for of_run in shown.values())
    rows = tuple(percentiles(evidence, shown)) if is_of_one_flow else ()
    return Latency(
        True,
        len(known),
        len(shown),
        _loops(evidence),
        host_clocks(evidence),
        Refused(len(refused), tuple(dict.fromkeys(refused.values()))),
        flows if len(flows) > 1 else (),
        _curves(evidence, shown) if is_of_one_flow else None,
        rows,
        delivered_kind(evidence),
        late_senders(evidence),
        outages(evidence),
        unsent,
        sum(of_run.loose for of_run in shown.values()) - unsent,
        clock_differences(evidence, rows),
    )


def _loops(evidence: Evidence) -> str:
    loops = {all_levels(entry).get("loop", OPEN) for entry in evidence.designed}
    if len(loops) > 1:
        return BOTH
    return CLOSED if loops == {CLOSED} else OPEN


def _refused(evidence: Evidence) -> dict[str, str]:
    """Return run → treatment of the runs whose one-way latencies are not known."""
    frame = evidence.usable
    is_refused = not_compared.too_wide(evidence, frame, not_compared.MEDIAN)
    runs = frame.filter(pl.Series(is_refused, dtype=pl.Boolean))["run"].to_list()
    return {run: evidence.treatment_title(treatment_of(evidence, run)) for run in runs}


def _curves(evidence: Evidence, series: Mapping[str, Series]) -> Curves:
    across = facet_factor(evidence)
    groups: dict[tuple[str, str], list[FloatArray]] = {}
    for run, run_series in series.items():
        treatment = treatment_of(evidence, run)
        tone = tone_of(evidence, treatment)
        groups.setdefault((panel_of(evidence, treatment, across), tone), []).append(
            run_series.values_us
        )
    budget = POINTS_PER_PAGE // max(1, len(groups))
    points_max = max(POINTS_PER_CURVE_MIN, min(POINTS_PER_CURVE_MAX, budget))
    points: list[Point] = []
    is_thinned = False
    for (panel, tone), group_values_us in groups.items():
        curve = stats.ecdf(np.concatenate(group_values_us), points_max)
        is_thinned = is_thinned or curve.thinned
        points += [
            {
                "us": rounded(float(value)),
                "share": rounded(float(share), 5),
                "colour": tone,
                "panel": panel,
            }
            for value, share in zip(curve.values, curve.shares, strict=True)
        ]
    chart = Chart(
        [point for point in points if point["us"] > 0],
        titles_of(evidence, evidence.primary),
        words.factor_title(evidence.primary),
        panels=panels(evidence, across, [point["panel"] for point in points]),
        per_row=panels_per_row(evidence),
    )
    pooled = tuple(_pooled(evidence, across))
    return Curves(chart, pooled, points_max if is_thinned else None)


def _pooled(evidence: Evidence, across: str | None) -> Iterator[str]:
    """Yield the titles of the factors over which a curve pools."""
    for name in evidence.varied:
        is_pooled = name not in ("pattern", evidence.primary, across)
        if is_pooled and len(levels_run(evidence, name)) > 1:
            yield words.factor_title(name)
