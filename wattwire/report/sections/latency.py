"""Latency: each run's series with its losses, percentiles by the rule, curves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.dataset import Evidence, by_treatment, levels_run
from wattwire.analysis.latency import Series
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.report import figures
from wattwire.report.figures.panels import (
    facet_factor,
    panel_of,
    panels,
    panels_per_row,
    titles_of,
    treatment_of,
)
from wattwire.report.parts import Column, Figure, Section, Table, Text
from wattwire.report.tables.factor_columns import factor_columns

SHARES = (0.5, 0.9, 0.99, 0.999)
RUNS_MIN = 3
"""From so many runs on a percentile is that of the typical run."""
POINTS_PER_CURVE_MAX, POINTS_PER_CURVE_MIN, POINTS_PER_PAGE = 400, 100, 20_000


def section(evidence: Evidence, every: Mapping[str, Series]) -> Section:
    """The page's part about latency; `every` is the series of every usable run, by run."""
    part = Section("latency", "Latency")
    series = {run: s for run, s in every.items() if s.values_us.size}
    if not series:
        part.parts.append(Text("No usable run carries a latency.", "warning"))
        return part
    part.parts.append(
        Text(
            "Latency runs from the moment a message was handed over to its callback (topics), "
            "from a request to the reply in hand (calls), from a goal to its result (actions). "
            "A lost message and a failed call stand as +∞: their curve ends below 100 %."
        )
    )
    part.parts.append(_curves(evidence, series))
    part.parts.append(_percentiles(evidence, series))
    loose = sum(s.loose for s in series.values())
    if loose:
        part.parts.append(
            Text(
                f"{words.plural(loose, 'loss', 'losses')} left no record of when they were sent; "
                "they count in the quantiles and stand at the end of their series.",
                "note",
            )
        )
    return part


def _curves(evidence: Evidence, series: Mapping[str, Series]) -> Figure:
    across = facet_factor(evidence)
    groups: dict[tuple[str, str], list[FloatArray]] = {}
    for run, one in series.items():
        treatment = treatment_of(evidence, run)
        tone = evidence.title(evidence.primary, treatment.get(evidence.primary))
        groups.setdefault((panel_of(evidence, treatment, across), tone), []).append(one.values_us)
    budget = POINTS_PER_PAGE // max(1, len(groups))
    points_max = max(POINTS_PER_CURVE_MIN, min(POINTS_PER_CURVE_MAX, budget))
    points: list[dict[str, Any]] = []
    thinned = False
    for (panel, tone), parts in groups.items():
        curve = stats.ecdf(np.concatenate(parts), points_max)
        thinned = thinned or curve.thinned
        for value, share in zip(curve.values, curve.shares, strict=True):
            points.append(
                {
                    "us": figures.rounded(float(value)),
                    "share": figures.rounded(float(share), 5),
                    "colour": tone,
                    "panel": panel,
                }
            )
    caption = (
        f"Each curve pools the messages of {_pooled(evidence, across)}. "
        + (
            f"Curves are thinned to at most {points_max} points, with more of them above the 99th "
            "percentile; every kept point is exact. "
            if thinned
            else ""
        )
        + "Click a name in the legend to single it out."
    )
    return Figure(
        "latency-ecdf",
        "How latency is distributed",
        caption,
        figures.ecdf_chart(
            [p for p in points if p["us"] > 0],
            titles_of(evidence, evidence.primary),
            words.factor_title(evidence.primary),
            panels(evidence, across, [p["panel"] for p in points]),
            panels_per_row(evidence),
        ),
    )


def _pooled(evidence: Evidence, across: str | None) -> str:
    hidden = [
        name
        for name in evidence.varied
        if name not in ("pattern", evidence.primary, across) and len(levels_run(evidence, name)) > 1
    ]
    over = f" over {words.listed([words.factor_title(n) for n in hidden])}" if hidden else ""
    return f"all usable runs of its group{over}"


def _percentiles(evidence: Evidence, series: Mapping[str, Series]) -> Table:
    rows = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        each = [series[run].values_us for run in frame["run"].to_list() if run in series]
        if not each:
            continue
        row: dict[str, Any] = dict(zip(evidence.varied, key, strict=True))
        row["runs"] = len(each)
        row["messages"] = sum(values.size for values in each)
        row["latencies"] = sum(int(np.isfinite(values).sum()) for values in each)
        row["lost"] = _lost(each)
        for share in SHARES:
            row[_name(share)] = _over_runs(each, share)
        rows.append(row)
    columns = factor_columns(evidence)
    columns += [
        Column("runs", "runs", "measured"),
        Column("messages", "expected", "measured"),
        Column("latencies", "latencies", "measured"),
        Column("lost", "lost or failed", "measured"),
    ]
    columns += [Column(_name(s), _name(s).split("_")[0], "measured", "µs") for s in SHARES]
    return Table(
        "latency-percentiles",
        "Latency percentiles",
        columns,
        rows,
        "From three runs on: geometric mean of the runs' percentiles with a 95 % t interval over "
        "runs; “too few (found of needed)” where a run has too few messages for it. With one or "
        "two runs: the first run's percentile with its order-statistic interval, "
        "which describes that run only; “too few” where the effective sample, or the number of "
        "separate clusters above the percentile, does not carry it. “Latencies” stand behind a "
        "percentile together with the "
        "lost messages and failed calls, which count as +∞: “∞ (lost)” where more than that were "
        "lost or failed, at 95 %, or in a run whose percentile falls among them.",
    )


def _name(share: float) -> str:
    return f"p{100 * share:g}_us"


def _over_runs(runs: list[FloatArray], share: float) -> Any:
    if len(runs) >= RUNS_MIN:
        return _typical(runs, share)
    each = [stats.percentile(values, share) for values in runs]
    refused = [one for one in each if isinstance(one, stats.TooFew)]
    if refused and _among_lost(runs, share):
        return math.inf
    if refused:
        return min(refused, key=lambda one: one.found)
    return next(one.interval for one in each if isinstance(one, stats.Percentile))


def _typical(runs: list[FloatArray], share: float) -> Any:
    """The geometric mean of the runs' percentiles, as the answers take them."""
    fewest = min(values.size for values in runs)
    if fewest < stats.carried_size(share):
        few = stats.TooFew(fewest, stats.carried_size(share), carried.WHAT)
        return math.inf if _among_lost(runs, share) else few
    found = [stats.nearest_rank(np.sort(values), share) for values in runs]
    return stats.geometric_mean(found) if all(map(math.isfinite, found)) else math.inf


def _among_lost(runs: list[FloatArray], share: float) -> bool:
    """Whether so many were lost that the percentile is infinite, however few there were."""
    expected = sum(values.size for values in runs)
    return stats.share_interval(_lost(runs), expected).low > 1.0 - share


def _lost(runs: list[FloatArray]) -> int:
    return sum(int(np.isinf(values).sum()) for values in runs)
