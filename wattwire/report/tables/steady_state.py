"""Whether the runs of a treatment settled, and what the warm-up's cut did to their latency.

The cut is the study's, or that of its settling runs; the same for all treatments, and fixed before
the first block. What stands here only classifies: nothing is cut by it, and a run that never
settles is kept like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis import settling
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment, unanswered
from wattwire.analysis.latency import Series, series_of
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.report.parts import Column, Fold, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.stats.series.settling import drifts
from wattwire.stats.series.warm_up import POINTS_MIN, RUNS_MIN, UNSETTLED, WARM_UP

KEPT_MIN = 3
NAMED_MAX = 6
MOVING = (WARM_UP, UNSETTLED)


def fold(evidence: Evidence, series: Mapping[str, Series]) -> Fold | None:
    """The table of courses, closed away; None where no run carries a latency."""
    cut = _by_time(evidence) or evidence.warmup_calls > 0
    rows = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        runs = [run for run in frame["run"].to_list() if run in series]
        if not any(series[run].values_us.size for run in runs):
            continue
        row: dict[str, Any] = dict(zip(evidence.varied, key, strict=True))
        row |= _course(series, runs)
        if cut:
            lost = dict(zip(frame["run"].to_list(), unanswered(frame), strict=True))
            whole = (
                series_of(evidence.reader.recorded(run), evidence.runs[run], float(lost[run]), True)
                for run in runs
            )
            row["cut"] = _median(series[run].values_us for run in runs)
            row["whole"] = _median(one.values_us for one in whole)
        rows.append(row)
    if not rows:
        return None
    return Fold("Whether the runs settled", [_table(evidence, rows, cut)])


def _by_time(evidence: Evidence) -> bool:
    return float(evidence.study.get("plan", {}).get("warmup_s") or 0.0) > 0


def are_asked(evidence: Evidence) -> bool:
    """Whether calls back to back came after a warm-up, so that they ought to be settled."""
    closed = any(all_levels(entry).get("loop") == "closed" for entry in evidence.designed)
    return evidence.warmup_calls > 0 or (closed and _by_time(evidence))


def unsettled(evidence: Evidence, series: Mapping[str, Series]) -> list[str]:
    """Closed-loop treatments that have not settled though the study asks for a warm-up.

    By the settling runs of their cell, or where the courses of most windows move and do so in one
    direction: a machine that is faster at times moves windows, too, and is no cell's warm-up.
    """
    if not are_asked(evidence):
        return []
    named = dict.fromkeys(settling.unsettled(evidence.warm_up))
    for frame in by_treatment(evidence, evidence.usable).values():
        runs = [run for run in frame["run"].to_list() if run in series]
        levels = all_levels(evidence.runs[runs[0]]) if runs else {}
        if levels.get("loop") != "closed" or _course(series, runs)["consensus"] not in MOVING:
            continue
        if drifts([series[run].values_us for run in runs]):
            named[evidence.treatment_title(levels) or "the only treatment"] = None
    return list(named)


def told_unsettled(evidence: Evidence, series: Mapping[str, Series]) -> str:
    """Who has not settled, for the first sentence; empty where everybody has."""
    named = unsettled(evidence, series)
    if not named:
        return ""
    listed = words.listed_first(named, NAMED_MAX)
    calls = words.plural(evidence.warmup_calls, "call") if evidence.warmup_calls else "its time"
    return (
        f"Not settled after the warm-up ({calls}): {listed}; those figures are not of a steady "
        "state."
    )


def _course(series: Mapping[str, Series], runs: list[str]) -> dict[str, Any]:
    """Classes of the runs of one treatment, in the order of time inside each."""
    found = []
    for run in runs:
        one = series[run]
        # Losses of which nobody knows when they were sent stand at the end: no part of a course.
        found.append(stats.classify(one.values_us[: one.values_us.size - one.loose]))
    counted = Counter(course.name for course in found)
    settled = [c.settled_after for c in found if c.settled_after]
    return {
        "runs": len(found),
        "classes": ", ".join(f"{name} {count}" for name, count in counted.most_common()),
        "consensus": stats.consensus([course.name for course in found]),
        "settled": float(np.median(settled)) * 100 if settled else None,
    }


def _median(values: Iterable[FloatArray]) -> Any:
    """Geometric mean over runs of their median latency, µs."""
    medians = [stats.nearest_rank(np.sort(one), 0.5) for one in values if one.size]
    if len(medians) < KEPT_MIN:
        return stats.TooFew(len(medians), KEPT_MIN, "runs")
    return stats.geometric_mean(medians)


def _table(evidence: Evidence, rows: list[dict[str, Any]], cut: bool) -> Table:
    columns = [
        *factor_columns(evidence),
        Column("runs", "runs", "measured"),
        Column("classes", "courses"),
        Column("consensus", "together"),
        Column("settled", "settled after", "measured", "% of the window", digits=2),
    ]
    if cut:
        columns += [
            Column("cut", "median latency, warm-up cut", "measured", "µs"),
            Column("whole", "with the warm-up", "measured", "µs"),
        ]
    return Table(
        "courses",
        "Whether the runs settled",
        columns,
        rows,
        f"Each run's latency after the study's warm-up, from {POINTS_MIN} messages on: flat, "
        "warm-up (settles lower), slowdown (settles higher), no steady state. Changepoints with a "
        "penalty "
        "for correlated neighbours; a treatment has a course where three quarters of its runs "
        f"agree, {RUNS_MIN} or more. They only classify: no run and no message was left out for "
        "them.",
    )
