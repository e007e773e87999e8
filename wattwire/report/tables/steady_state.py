"""Classify runs by their steady state, and show the effect of the warm-up on latency.

The warm-up comes from the study or from settling runs. It is the same for all treatments and is
fixed before the first block. This module excludes no runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis import settling
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment
from wattwire.analysis.latency import Series
from wattwire.model.derived import FloatArray
from wattwire.report.parts import Column, Fold, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases
from wattwire.stats.series.settling import drifts
from wattwire.stats.series.warm_up import POINTS_MIN, RUNS_MIN, UNSETTLED, WARM_UP

PHRASES = Phrases(
    "steady_state",
    {
        "title": "Steady state of the runs",
        "unsettled": (
            "Not in steady state after the warm-up ({warm_up}): {treatments:listed 6}. The results "
            "of these treatments do not describe a steady state."
        ),
        "calls": "{calls:plural call}",
        "its_time": "stated as a time",
        "only_treatment": "the only treatment",
        "note": (
            "Each run with {points_min} or more messages after the study's warm-up is classified "
            "by the course of its latency: flat, warm-up (the latency settles at a lower level), "
            "slowdown (it settles at a higher level) or no steady state. The changepoint detection "
            "accounts for autocorrelation. A treatment is classified if at least three quarters of "
            "its runs, and at least {runs_min} runs, are in the same class. The classification "
            "excludes no run and no message."
        ),
    },
)

KEPT_MIN = 3
MOVING = (WARM_UP, UNSETTLED)


def fold(evidence: Evidence, series: Mapping[str, Series]) -> Fold | None:
    """Return the fold with the table of classes, or None if no run has a latency."""
    cut = _cuts_by_time(evidence) or evidence.warmup_calls > 0
    rows = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        runs = [run for run in frame["run"].to_list() if run in series]
        if not any(series[run].values_us.size for run in runs):
            continue
        row: dict[str, Any] = dict(zip(evidence.varied, key, strict=True))
        row |= _course_cells(series, runs)
        if cut:
            row["cut"] = _typical_latency_us(series[run].values_us for run in runs)
            row["whole"] = _typical_latency_us(
                np.concatenate([series[run].warm_up_us, series[run].values_us]) for run in runs
            )
        rows.append(row)
    if not rows:
        return None
    return Fold(PHRASES("title"), [_table(evidence, rows, cut)])


def _cuts_by_time(evidence: Evidence) -> bool:
    return evidence.study.plan.warmup_s > 0


def expects_steady_state(evidence: Evidence) -> bool:
    """Return whether runs should be in steady state.

    This applies to calls in closed loop after a warm-up.
    """
    closed = any(all_levels(entry).get("loop") == "closed" for entry in evidence.designed)
    return evidence.warmup_calls > 0 or (closed and _cuts_by_time(evidence))


def unsettled(evidence: Evidence, series: Mapping[str, Series]) -> list[str]:
    """Return the closed-loop treatments that are not in steady state after the warm-up.

    Either the settling runs of the cell show this, or most of the windows drift in one direction. A
    machine of varying speed shifts windows in both directions.
    """
    if not expects_steady_state(evidence):
        return []
    titles = dict.fromkeys(settling.unsettled(evidence.warm_up))
    for frame in by_treatment(evidence, evidence.usable).values():
        runs = [run for run in frame["run"].to_list() if run in series]
        levels = all_levels(evidence.runs[runs[0]]) if runs else {}
        if levels.get("loop") != "closed" or _course_cells(series, runs)["consensus"] not in MOVING:
            continue
        if drifts([series[run].values_us for run in runs]):
            titles[evidence.treatment_title(levels) or PHRASES("only_treatment")] = None
    return list(titles)


def unsettled_sentence(evidence: Evidence, series: Mapping[str, Series]) -> Phrase:
    """Return a sentence for the headline on treatments that are not in steady state.

    The result is "" if there are no such treatments.
    """
    titles = unsettled(evidence, series)
    if not titles:
        return Phrase()
    calls = evidence.warmup_calls
    warm_up = PHRASES("calls", calls=calls) if calls else PHRASES("its_time")
    return PHRASES("unsettled", warm_up=warm_up, treatments=titles)


def _course_cells(series: Mapping[str, Series], runs: list[str]) -> dict[str, Any]:
    """Return the table cells with the classes of a treatment's runs, in time order."""
    courses = []
    for run in runs:
        run_series = series[run]
        # Lost calls with an unknown send time are at the end. They are not classified.
        courses.append(
            stats.classify(run_series.values_us[: run_series.values_us.size - run_series.loose])
        )
    counted = Counter(course.name for course in courses)
    settled = [course.settled_after for course in courses if course.settled_after]
    return {
        "runs": len(courses),
        "classes": ", ".join(f"{name} {count}" for name, count in counted.most_common()),
        "consensus": stats.consensus([course.name for course in courses]),
        "settled": float(np.median(settled)) * 100 if settled else None,
    }


def _typical_latency_us(values: Iterable[FloatArray]) -> Any:
    """Return the geometric mean of the runs' median latencies in µs."""
    medians = [
        stats.nearest_rank(np.sort(latencies_us), 0.5)
        for latencies_us in values
        if latencies_us.size
    ]
    if len(medians) < KEPT_MIN:
        return stats.TooFew(len(medians), KEPT_MIN, "runs")
    return stats.geometric_mean(medians)


def _table(evidence: Evidence, rows: list[dict[str, Any]], cut: bool) -> Table:
    columns = [
        *factor_columns(evidence),
        Column("runs", "runs", "measured"),
        Column("classes", "courses"),
        Column("consensus", "overall course"),
        Column("settled", "settled after", "measured", "% of the window", digits=2),
    ]
    if cut:
        columns += [
            Column("cut", "median latency without warm-up", "measured", "µs"),
            Column("whole", "with warm-up", "measured", "µs"),
        ]
    return Table(
        "courses",
        PHRASES("title"),
        columns,
        rows,
        PHRASES("note", points_min=POINTS_MIN, runs_min=RUNS_MIN),
    )
