"""Test the drift of each treatment, its sentence, its table and the figure of the paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.charts import Chart
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.drift import numbers
from wattwire.analysis.topics.drift.numbers import (
    FIRST,
    LAST,
    PANELS_MAX,
    Drifts,
    TreatmentDrift,
    drifts,
)
from wattwire.report.figures.drive_paths import paths_chart
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats.results import Interval
from wattwire.store import Campaign

SENTENCES = Sentences("drift")
DRIVE = {
    "legs": [{"seconds": 0.5, "m_per_s": 1.0}, {"seconds": 0.5, "m_per_s": -1.0}],
    "watchdog_s": 0.5,
}
DRIFT_M = {"swift": 0.01, "python": 0.04}


def evidence_of(folder, drive=DRIVE, blocks=3):
    """Return a campaign whose runs of block b have the drift of the language plus b mm."""
    shape = Shape(
        blocks=blocks, patterns=("topic",), clients=(1,), intervals_s=(0.1,), duration_s=2.0,
        study={"drive": drive} if drive else {},
    )  # fmt: skip
    evidence = gather(Campaign(write_campaign(folder, shape)))
    if drive is None:
        return evidence
    is_swift = pl.col("factor.language") == "swift"
    mean_m = pl.when(is_swift).then(DRIFT_M["swift"]).otherwise(DRIFT_M["python"])
    mean_m = mean_m + pl.col("block") / 1000
    evidence.usable = evidence.usable.with_columns(
        drift_mean_m=mean_m, drift_p95_m=2 * mean_m, drift_max_m=3 * mean_m,
        drive_end_x_m=pl.lit(0.5), drive_end_y_m=pl.lit(-0.25),
        drive_end_heading_deg=pl.lit(359.0),
        commands_late=pl.lit(2), commands_lost=pl.lit(1), commands_unsent=pl.lit(0),
        watchdog_stops=pl.lit(0),
    )  # fmt: skip
    evidence.groups.clear()
    positions = np.round(np.arange(21) / 10, 3).tolist()
    for document in evidence.runs.values():
        document["drive"] = {"step_s": 0.1, "x_m": positions, "y_m": [0.0] * 21}
    return evidence


def test_a_treatment_has_the_drift_of_its_runs_with_an_interval(tmp_path):
    result = drifts(evidence_of(tmp_path / "c"))
    by_name = {row.treatment[0]: row for row in result.treatments}
    assert set(by_name) == set(DRIFT_M)
    for name, row in by_name.items():
        assert row.runs == 3 and row.mean_cm.count == 3
        runs_cm = 100 * DRIFT_M[name] + np.array([0.1, 0.2, 0.3])
        assert row.centre_cm == pytest.approx(np.prod(runs_cm) ** (1 / 3))
        assert row.mean_cm.low < row.centre_cm < row.mean_cm.high
        assert row.p95_cm == pytest.approx(2 * runs_cm.mean())
        assert row.greatest_cm == pytest.approx(3 * (100 * DRIFT_M[name] + 0.3))
        assert (row.end_x_cm, row.end_y_cm, row.end_heading_deg) == (50.0, -25.0, 359.0)
        assert (row.late, row.lost, row.unsent, row.stops) == (6, 3, 0, 0)
    assert (result.least.treatment[0], result.most.treatment[0]) == ("swift", "python")
    assert (result.laps, result.watchdog_s, result.is_recorded) == (2, 0.5, False)


def with_means(evidence, means_m):
    values = pl.Series("drift_mean_m", [*means_m] * (evidence.usable.height // len(means_m)))
    evidence.usable = evidence.usable.sort("factor.language").with_columns(values)
    evidence.groups.clear()
    return evidence


def test_the_interval_of_scattered_distances_is_above_0(tmp_path):
    evidence = with_means(evidence_of(tmp_path / "c"), [0.001, 0.01, 0.2])
    for row in drifts(evidence).treatments:
        assert 0 < row.mean_cm.low < row.centre_cm < row.mean_cm.high
        assert row.centre_cm == pytest.approx(100 * 2e-6 ** (1 / 3))


def test_a_drift_of_0_has_a_mean_without_an_interval(tmp_path):
    evidence = with_means(evidence_of(tmp_path / "c"), [0.0, 0.01, 0.02])
    assert [row.mean_cm for row in drifts(evidence).treatments] == [pytest.approx(1.0)] * 2


def test_two_runs_have_a_mean_without_an_interval(tmp_path):
    result = drifts(evidence_of(tmp_path / "c", blocks=2))
    assert [row.interval for row in result.treatments] == [None, None]


def test_a_study_without_a_robot_has_no_drift_and_no_section(tmp_path):
    assert drifts(evidence_of(tmp_path / "c", drive=None)) == Drifts()
    assert topic_page("drift", Drifts()).parts == ()


def test_the_chart_has_the_first_and_the_last_lap_of_one_run_per_treatment(tmp_path):
    chart = drifts(evidence_of(tmp_path / "c")).chart
    assert sorted(chart.panels) == ["python", "swift"] and len(chart.panels) <= PANELS_MAX
    ends = {
        colour: [p["x"] for p in chart.points if p["colour"] == colour and p["panel"] == "swift"]
        for colour in (FIRST, LAST)
    }
    assert (ends[FIRST][0], ends[FIRST][-1]) == (0.0, 1.0)
    assert (ends[LAST][0], ends[LAST][-1]) == (1.0, 2.0)


def test_a_lap_of_no_whole_number_of_steps_is_drawn_where_it_was_driven(tmp_path):
    evidence = evidence_of(tmp_path / "c", {**DRIVE, "legs": [{"seconds": 0.44, "m_per_s": 1.0}]})
    chart = drifts(evidence).chart  # four laps; the last one begins at 1.32 s
    assert [p["x"] for p in chart.points if p["colour"] == LAST][0] == 1.3


def test_the_chart_and_the_means_leave_out_a_run_without_drift(tmp_path):
    evidence = evidence_of(tmp_path / "c")
    is_first = pl.col("block") == 1
    unknown = pl.when(is_first).then(None).otherwise(pl.col("drift_mean_m"))
    evidence.usable = evidence.usable.with_columns(drift_mean_m=unknown)
    evidence.groups.clear()
    for run in evidence.usable.filter(is_first)["run"]:
        evidence.runs[run]["drive"]["x_m"] = [9.0] * 21
    result = drifts(evidence)
    assert [row.runs for row in result.treatments] == [2, 2]
    assert max(point["x"] for point in result.chart.points) == 2.0


@pytest.mark.parametrize(("panels_max", "is_cut"), [(1, True), (2, False)])
def test_a_chart_without_the_last_treatments_is_cut(tmp_path, monkeypatch, panels_max, is_cut):
    monkeypatch.setattr(numbers, "PANELS_MAX", panels_max)
    assert drifts(evidence_of(tmp_path / "c")).is_cut is is_cut


@pytest.mark.parametrize(("is_cut", "sentences"), [(True, 1), (False, 0)])
def test_the_figure_says_that_it_lacks_treatments_only_if_it_does(is_cut, sentences):
    points = [{"x": x, "y": x, "order": x, "colour": FIRST, "panel": "a"} for x in (0, 1)]
    chart = Chart(points, [FIRST], "lap", panels=["a"])
    row = replace(row_of("a", 1.5), treatment=())
    page = topic_page("drift", Drifts((row,), 2, 0.5, chart=chart, is_cut=is_cut))
    assert str(page).count("The figure has the first 12 treatments.") == sentences


def test_both_axes_of_the_paths_have_one_scale():
    points = [{"x": x, "y": 0.5 * x, "order": x, "colour": FIRST, "panel": "a"} for x in (0, 4)]
    spec = paths_chart(Chart(points, [FIRST], "lap", panels=["a"]), "x (m)", "y (m)")
    lengths = []
    for axis in ("x", "y"):
        low, high = spec["encoding"][axis]["scale"]["domain"]
        lengths.append(high - low)
    assert lengths[0] == pytest.approx(lengths[1]) == pytest.approx(4.4)
    assert spec["width"] == spec["height"]


def row_of(name, mean_cm):
    return TreatmentDrift((name,), 4, mean_cm, 2.0, 3.0, 0.0, 0.0, 720.0, 1, 2, 4, 3)


def test_the_sentence_names_the_least_and_the_greatest_drift_with_their_intervals():
    rows = (
        row_of("a", Interval(1.25, 1.05, 1.45, 0.95, 4, "t")),
        row_of("b", Interval(6.0, 5.0, 7.0, 0.95, 4, "t")),
    )
    text = SENTENCES.summary(Drifts(rows, 2, 0.5))
    assert text.startswith(
        "The delivery of the commands alone makes a mean drift from 1.25 cm (a; "
    )
    assert "exploratory 95 % interval 1.05 to 1.45 cm, 4 runs) to 6.00 cm (b; " in text
    assert text.endswith("after 2 laps.")
    recorded = SENTENCES.summary(Drifts((row_of("zenoh", 3.0),), is_recorded=True))
    assert "recordings" in recorded and "first is 3.00 cm (zenoh; 4 runs)" in recorded


def test_the_table_has_a_row_per_treatment():
    page = topic_page("drift", Drifts((replace(row_of("a", 1.5), treatment=()),), 2, 0.5))
    (table,) = [part for _, part in page.parts if getattr(part, "id", "") == "drift"]
    assert table.rows[0]["mean_cm"] == 1.5
    assert [table.rows[0][key] for key in ("late", "lost", "unsent", "stops")] == [1, 2, 4, 3]
