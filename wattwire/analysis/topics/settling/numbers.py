"""Evaluate settling runs, and classify runs by their steady state after the warm-up.

The warm-up comes from the study or from settling runs. It is the same for all treatments and is
fixed before the first block: `judge` determines its number of calls once, and the journal records
it. `settling` excludes no runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment
from wattwire.analysis.latency import Series, series_of
from wattwire.model import words
from wattwire.model.derived import FloatArray, column
from wattwire.model.errors import WattwireError
from wattwire.model.warm_up import SETTLING, SETTLING_CALLS, SETTLING_S, STEPS
from wattwire.stats.series.settling import LAST_SHARE, TOLERANCE, Settled, drifts, settle
from wattwire.stats.series.warm_up import POINTS_MIN, RUNS_MIN, UNSETTLED, WARM_UP
from wattwire.store import Campaign

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


@dataclass(frozen=True)
class _Cell:
    """The settling runs of one cell.

    Each run is an array of latencies (µs) by call of a client, shape (calls,).
    """

    entry: Mapping[str, Any]
    runs: list[FloatArray]

    @property
    def title(self) -> str:
        """The name of the cell and its settings, as in the study."""
        names = [str(name) for name in dict.fromkeys(reversed(self.entry["cells"].values()))]
        levels = self.entry["levels"]
        settings = [
            f"{key.removeprefix('settings.')} {words.plain(value)}"
            for key, value in self.entry["treatment"].items()
            if key.startswith("settings.") or key in ("variant", "pattern") and key in levels
        ]
        return " ".join([" with ".join(names), *settings])

    @property
    def call_s(self) -> float:
        """Duration (s) of a call in the steady state; 0 if no call was answered."""
        means = []
        for run in self.runs:
            last = run[int(run.size * (1.0 - LAST_SHARE)) :]
            known = last[np.isfinite(last)]
            means += [float(known.mean())] if known.size else []
        return float(np.median(means)) / 1e6 if means else 0.0


def judge(campaign: Campaign) -> dict[str, Any]:
    """Return the journal's entry on the warm-up.

    It has the number of `calls`, the calls that each cell needs, and the cell that limits the
    number.
    """
    cells = _cells(campaign)
    results = [(cell, settle(cell.runs)) for cell in cells]
    wanted = max((settled.calls for _, settled in results if settled.calls), default=STEPS[0])
    max_s = campaign.study.plan.warmup_max_s
    slowest = max(cells, key=lambda cell: cell.call_s)
    fitting = [step for step in STEPS if step <= wanted and step * slowest.call_s <= max_s]
    calls = max(fitting, default=STEPS[0])
    settling = [row for row in campaign.rows() if row.get("control") == SETTLING]
    quiet = {row["run"] for row in settling if row["verdict"] == "valid"}
    judgement = {
        "calls": calls,
        "runs": sum(len(cell.runs) for cell in cells),
        "disturbed": len({row["run"] for row in settling} - quiet),
        "wanted": wanted,
        "bound_by": slowest.title if calls < wanted else None,
        "call_s": slowest.call_s,
        "max_s": max_s,
        "cells": [_cell_entry(cell, settled, calls) for cell, settled in results],
    }
    return {**judgement, "words": sentence(judgement)}


def _cells(campaign: Campaign) -> list[_Cell]:
    """Return the settling runs that recorded messages, by treatment."""
    cells: dict[str, _Cell] = {}
    for entry in campaign.plan:
        if entry.get("control") != SETTLING:
            continue
        cell = cells.setdefault(entry["treatment_key"], _Cell(entry, []))
        try:
            messages, document = campaign.recorded(entry["run"]), campaign.run(entry["run"])
        except WattwireError:
            continue  # no attempt recorded messages; the cell may have no settling run
        series = series_of(messages, document, 0.0, with_warm_up=True).values_us
        cell.runs.append(_by_call(series, int(entry["levels"]["clients"])))
    return list(cells.values())


def _by_call(series: FloatArray, clients: int) -> FloatArray:
    """Return the mean latency of each call over the clients, shape (calls,).

    The clients call in turn, so `series` alternates between the clients.
    """
    series = np.where(np.isfinite(series), series, np.nan)
    whole = series[: series.size - series.size % clients].reshape(-1, clients)
    known = np.isfinite(whole)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, whole, 0.0).sum(axis=1) / known.sum(axis=1)
    return np.asarray(mean, dtype=np.float64)


def _cell_entry(cell: _Cell, settled: Settled, calls: int) -> dict[str, Any]:
    return {
        "cell": cell.title,
        "calls": settled.calls,
        "settled": settled.settled and settled.calls is not None and settled.calls <= calls,
        "known": settled.calls is not None,
        "courses": [stats.classify(run).name for run in cell.runs],
        "made": [int(run.size) for run in cell.runs],
        "call_s": cell.call_s,
    }


def sentence(judgement: Mapping[str, Any]) -> str:
    """Return a sentence that states the warm-up and how it was determined."""
    longest = [cell["cell"] for cell in judgement["cells"] if cell["calls"] == judgement["wanted"]]
    text = (
        f"warm-up of all treatments: {words.plural(judgement['calls'], 'call')} of each client, "
        "flagged and excluded from all results"
    )
    if judgement.get("disturbed"):
        runs = words.plural(judgement["runs"], "settling run")
        text += (
            f"; {words.count(judgement['disturbed'])} of {runs} ran under other load, which can "
            "lengthen the warm-up"
        )
    if cells := unknown_cells(judgement):
        text += f"; the warm-up of {words.listed(cells)} is unknown"
    if judgement["bound_by"]:
        return (
            f"{text}; {words.listed(longest)} would need {words.count(judgement['wanted'])} calls, "
            f"but those of {judgement['bound_by']} would take more than "
            f"{words.duration(judgement['max_s'])} per run (plan.warmup_max_s)"
        )
    if longest:
        text += f"; the longest warm-up is that of {words.listed(longest)}"
    return text


def unknown_cells(judgement: Mapping[str, Any] | None) -> list[str]:
    """Return the cells whose settling runs have too few answered calls for a conclusion."""
    return [cell["cell"] for cell in judgement["cells"] if not cell["known"]] if judgement else []


def unsettled_cells(judgement: Mapping[str, Any] | None) -> list[str]:
    """Return the cells whose settling runs had not reached steady state after the warm-up."""
    if not judgement:
        return []
    return [cell["cell"] for cell in judgement["cells"] if cell["known"] and not cell["settled"]]
