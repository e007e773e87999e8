"""Classify runs by their steady state after the warm-up, which excludes no runs.

The warm-up comes from the study or from settling runs (`warm_up_rule.py`). It is the same for all
treatments and is fixed before the first block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment
from wattwire.analysis.latency import Series
from wattwire.analysis.topics.settling.warm_up_rule import unsettled_cells
from wattwire.model.derived import FloatArray, column
from wattwire.model.warm_up import SETTLING_CALLS, SETTLING_S
from wattwire.stats.series.settling import TOLERANCE, drifts
from wattwire.stats.series.warm_up import POINTS_MIN, RUNS_MIN, UNSETTLED, WARM_UP

KEPT_MIN = 3
"""Minimum number of runs for a mean latency."""
MOVING = (WARM_UP, UNSETTLED)
ACTIVE_SHARE_MIN = 0.8
"""Mean share of active clients below which a treatment is named."""
Latency = stats.Interval | stats.TooFew | stats.NotComputable | None


@dataclass(frozen=True)
class TreatmentCourses:
    """The courses of a treatment's runs: each class with its number of runs, and the overall class.

    `settled_percent` is the median time after which runs settled, in percent of the window; None if
    no run did. The latencies are geometric means of the runs' medians without the warm-up and with
    it; None without a warm-up.
    """

    treatment: tuple[str, ...]
    runs: int
    classes: tuple[tuple[str, int], ...]
    consensus: str
    settled_percent: float | None
    without_us: Latency = None
    with_us: Latency = None


@dataclass(frozen=True)
class FewActive:
    """A treatment with fewer active than planned `clients`, as the median over its runs.

    Clients continue until the slowest client has made its calls or until their records are full. A
    much faster client ends earlier, so that fewer clients are active during the later calls of the
    others. The title is "" if the campaign has one treatment.
    """

    treatment: str
    active: float
    clients: int


@dataclass(frozen=True)
class Settling:
    """The courses of all treatments, and the titles of those that are `unsettled`.

    A title is "" if the campaign has one treatment. `warmup_calls` is 0 if the warm-up is a time.
    `rule` is the one that determined it, None without settling runs.
    """

    treatments: tuple[TreatmentCourses, ...] = ()
    unsettled: tuple[str, ...] = ()
    has_warm_up: bool = False
    warmup_calls: int = 0
    points_min: int = POINTS_MIN
    runs_min: int = RUNS_MIN
    few_active: tuple[FewActive, ...] = ()
    rule: Rule | None = None


@dataclass(frozen=True)
class Rule:
    """The rule by which settling runs of `cells` cells determined the warm-up, in calls."""

    cells: int
    calls: int
    calls_max: int = SETTLING_CALLS
    seconds_max: float = SETTLING_S
    percent: float = 100 * TOLERANCE


def settling(evidence: Evidence, series: Mapping[str, Series]) -> Settling:
    """Return the courses of each treatment with latencies.

    `series` maps each valid run to its series of latencies.
    """
    if not evidence.has_messages:
        return Settling()
    is_cut = _cuts_by_time(evidence) or evidence.warmup_calls > 0
    is_expected = expects_steady_state(evidence)
    courses: list[TreatmentCourses] = []
    unsettled = unsettled_cells(evidence.warm_up) if is_expected else []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        runs = [run for run in frame["run"].to_list() if run in series]
        if not any(series[run].values_us.size for run in runs):
            continue
        courses.append(_courses(key, [series[run] for run in runs], is_cut))
        levels = all_levels(evidence.runs[runs[0]])
        is_moving = levels.get("loop") == "closed" and courses[-1].consensus in MOVING
        if is_expected and is_moving and drifts([series[run].values_us for run in runs]):
            unsettled.append(evidence.treatment_title(levels))
    titles = tuple(dict.fromkeys(unsettled))
    few = tuple(few_active(evidence))
    calls, determined = evidence.warmup_calls, rule(evidence.warm_up) if evidence.warm_up else None
    return Settling(tuple(courses), titles, is_cut, calls, few_active=few, rule=determined)


def expects_steady_state(evidence: Evidence) -> bool:
    """Return whether runs should be in steady state.

    This applies to calls in closed loop after a warm-up. A treatment is unsettled if the settling
    runs of its cell show this, or if most of the windows drift in one direction. A machine of
    varying speed shifts windows in both directions.
    """
    closed = any(all_levels(entry).get("loop") == "closed" for entry in evidence.designed)
    return evidence.warmup_calls > 0 or (closed and _cuts_by_time(evidence))


def few_active(evidence: Evidence) -> Iterator[FewActive]:
    """Yield the treatments in which less than ACTIVE_SHARE_MIN of the clients were active."""
    for frame in by_treatment(evidence, evidence.usable).values():
        levels = all_levels(evidence.runs[frame["run"][0]]) if frame.height else {}
        clients = int(levels.get("clients", 1))
        active = column(frame, "clients_active_mean")
        active = active[np.isfinite(active)]
        if clients < 2 or not active.size:
            continue
        median = float(np.median(active))
        if median < ACTIVE_SHARE_MIN * clients:
            yield FewActive(evidence.treatment_title(levels), median, clients)


def _cuts_by_time(evidence: Evidence) -> bool:
    return evidence.study.plan.warmup_s > 0


def _courses(key: tuple[str, ...], of_runs: list[Series], is_cut: bool) -> TreatmentCourses:
    """Return the classes of a treatment's runs. `of_runs` has the series of each run."""
    # Lost calls with an unknown send time are at the end. They are not classified.
    courses = [stats.classify(run.values_us[: run.values_us.size - run.loose]) for run in of_runs]
    counted = Counter(course.name for course in courses)
    settled = [course.settled_after for course in courses if course.settled_after]
    whole = (np.concatenate([run.warm_up_us, run.values_us]) for run in of_runs)
    return TreatmentCourses(
        key,
        len(courses),
        tuple(counted.most_common()),
        stats.consensus([course.name for course in courses]),
        float(np.median(settled)) * 100 if settled else None,
        _typical_latency_us(run.values_us for run in of_runs) if is_cut else None,
        _typical_latency_us(whole) if is_cut else None,
    )


def _typical_latency_us(values: Iterable[FloatArray]) -> Latency:
    """Return the geometric mean of the runs' median latencies in µs."""
    medians = [
        stats.nearest_rank(np.sort(latencies_us), 0.5)
        for latencies_us in values
        if latencies_us.size
    ]
    if len(medians) < KEPT_MIN:
        return stats.TooFew(len(medians), KEPT_MIN, "runs")
    return stats.geometric_mean(medians)


def rule(warm_up: Mapping[str, Any]) -> Rule:
    """Return the rule that determined a campaign's warm-up, from the journal's entry."""
    return Rule(len(warm_up["cells"]), int(warm_up["calls"]))
