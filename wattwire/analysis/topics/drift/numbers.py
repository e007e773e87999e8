"""Compute the drift of a robot for each treatment, and the paths for a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.charts import PANELS_PER_ROW, Chart, Point, rounded
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import FloatArray, column, known_mean
from wattwire.stats.results import Interval

MEAN, P95, GREATEST = "drift_mean_m", "drift_p95_m", "drift_max_m"
CM_PER_M = 100.0
PANELS_MAX = 12
FIRST, LAST = "first lap", "last lap"


@dataclass(frozen=True)
class TreatmentDrift:
    """The drift of a treatment over its runs, in cm; a value is None if no run knows it.

    `mean_cm` is the geometric mean of the runs' means, with a t interval on the log scale if there
    are at least three runs; with a drift of 0, it is the mean, without an interval. `p95_cm` is the
    mean over runs, and `greatest_cm` the greatest distance of any run. The end is the mean pose at
    the end of the last lap. Counts are sums over runs; None if they are unknown.
    """

    treatment: tuple[str, ...]
    runs: int
    mean_cm: Interval | float
    p95_cm: float | None
    greatest_cm: float | None
    end_x_cm: float | None
    end_y_cm: float | None
    end_heading_deg: float | None
    late: int | None
    lost: int | None
    unsent: int | None
    stops: int | None

    @property
    def centre_cm(self) -> float:
        """Return the mean drift without its interval (cm)."""
        return self.mean_cm.estimate if isinstance(self.mean_cm, Interval) else self.mean_cm

    @property
    def interval(self) -> Interval | None:
        """Return the interval of the mean drift (cm); None with fewer than three runs."""
        return self.mean_cm if isinstance(self.mean_cm, Interval) else None


@dataclass(frozen=True)
class Drifts:
    """The drift of all treatments with known drift, in the order of treatments.

    `is_recorded` states that others recorded the poses of a robot; otherwise they are computed from
    the arrivals of commands.
    """

    treatments: tuple[TreatmentDrift, ...] = ()
    laps: int = 0
    watchdog_s: float = 0.0
    is_recorded: bool = False
    chart: Chart = Chart()
    is_cut: bool = False
    """Whether the chart shows the first treatments only."""

    @property
    def least(self) -> TreatmentDrift:
        """Return the treatment with the least mean drift."""
        return min(self.treatments, key=lambda row: row.centre_cm)

    @property
    def most(self) -> TreatmentDrift:
        """Return the treatment with the greatest mean drift."""
        return max(self.treatments, key=lambda row: row.centre_cm)


def drifts(evidence: Evidence) -> Drifts:
    """Return the drift of each treatment with valid runs; none for a study without a robot."""
    if MEAN not in evidence.usable.columns:
        return Drifts()
    groups = by_treatment(evidence, evidence.usable)
    rows = tuple(_of_treatments(groups))
    drive, plan = evidence.study.drive, evidence.study.plan
    if drive is None or evidence.imported:
        return Drifts(rows, is_recorded=True)
    laps = drive.laps(plan.duration_s)
    known = {key: _with_drift(frame) for key, frame in groups.items()}
    panels = {key: frame for key, frame in known.items() if frame.height}
    chart = _paths(evidence, panels, drive.lap_s, laps)
    is_cut = len(panels) > PANELS_MAX
    return Drifts(rows, laps, drive.watchdog_s, chart=chart, is_cut=is_cut)


def _with_drift(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.Series(np.isfinite(column(frame, MEAN))))


def _of_treatments(groups: Mapping[tuple[str, ...], pl.DataFrame]) -> Iterator[TreatmentDrift]:
    for key, frame in groups.items():
        means_cm = CM_PER_M * column(frame, MEAN)
        means_cm = means_cm[np.isfinite(means_cm)]
        if not means_cm.size:
            continue
        greatest_m = column(frame, GREATEST)
        yield TreatmentDrift(
            key,
            int(means_cm.size),
            _centre(means_cm),
            _mean(frame, P95, CM_PER_M),
            CM_PER_M * float(np.nanmax(greatest_m)) if np.isfinite(greatest_m).any() else None,
            _mean(frame, "drive_end_x_m", CM_PER_M),
            _mean(frame, "drive_end_y_m", CM_PER_M),
            _mean(frame, "drive_end_heading_deg"),
            _sum(frame, "commands_late"),
            _sum(frame, "commands_lost"),
            _sum(frame, "commands_unsent"),
            _sum(frame, "watchdog_stops"),
        )


def _centre(means_cm: FloatArray) -> Interval | float:
    """Return the centre of distances (cm), with an interval that has no negative end if known."""
    interval = stats.geometric_mean(means_cm)
    if isinstance(interval, Interval):
        return interval
    has_logs = bool((means_cm > 0).all())
    return float(np.exp(np.log(means_cm).mean()) if has_logs else means_cm.mean())


def _mean(frame: pl.DataFrame, name: str, factor: float = 1.0) -> float | None:
    return known_mean(factor * column(frame, name))


def _sum(frame: pl.DataFrame, name: str) -> int | None:
    """Return the sum of a column over all runs; None if a run does not know it."""
    values = column(frame, name)
    return None if np.isnan(values).any() else int(values.sum())


def _paths(
    evidence: Evidence, panels: Mapping[tuple[str, ...], pl.DataFrame], lap_s: float, laps: int
) -> Chart:
    """Return the first and the last lap of the first run of each of up to PANELS_MAX panels.

    Fields of the points: x, y (m), order, colour, panel.
    """
    points: list[Point] = []
    titles: list[str] = []
    for key, frame in list(panels.items())[:PANELS_MAX]:
        drawn = evidence.runs.get(frame["run"][0], {}).get("drive")
        if not drawn:
            continue
        titles.append(", ".join(key))
        places = list(zip(drawn["x_m"], drawn["y_m"], strict=True))
        for colour, lap in ((FIRST, 0), (LAST, laps - 1)):
            begin, end = (round(n * lap_s / drawn["step_s"]) for n in (lap, lap + 1))
            for order, (x_m, y_m) in enumerate(places[begin : end + 1]):
                points.append(
                    {"x": rounded(x_m), "y": rounded(y_m), "order": order, "colour": colour,
                     "panel": titles[-1]}
                )  # fmt: skip
    return Chart(points, [FIRST, LAST], "lap", panels=titles, per_row=PANELS_PER_ROW)
