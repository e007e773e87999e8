"""Tests of the figures that a study requests, on campaigns with planted lines and curves."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from wattwire.analysis.charts import LINEAR, LOG, Chart, Point
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.requested.drawings import (
    Axis,
    Drawing,
    Fits,
    FittedLine,
    Obstacle,
    RequestedFigure,
    Stack,
    Substitute,
)
from wattwire.analysis.topics.requested.numbers import Requested, requested
from wattwire.report.parts import Figure, Fold, Text
from wattwire.report.tests.line_campaign import (
    CLIENTS,
    HOPS,
    LINE,
    SLOPE_US,
    STACKED,
    campaign_of,
)
from wattwire.report.tests.synthetic import FAST, SLOW
from wattwire.report.topic_page import topic_page
from wattwire.stats import Interval, LackOfFit, LinearFit, NotComputable, TooFew
from wattwire.store import Campaign


def figures_of(folder, *figures, **shape) -> tuple[RequestedFigure, ...]:
    return requested(gather(Campaign(campaign_of(folder, list(figures), **shape)))).figures


def drawing_of(folder, spec, **shape) -> Drawing:
    (figure,) = figures_of(folder, spec, **shape)
    assert figure.drawing is not None
    return figure.drawing


def lines_of(folder, spec=LINE, **shape) -> tuple[Drawing, Fits]:
    drawing = drawing_of(folder, spec, **shape)
    assert drawing.fits is not None
    return drawing, drawing.fits


def obstacle_of(folder, spec, **shape) -> Obstacle | None:
    (figure,) = figures_of(folder, spec, **shape)
    return figure.obstacle


def points_of(drawing: Drawing, part: str) -> list[Point]:
    return [point for point in drawing.chart.points if point["part"] == part]


def test_a_planted_line_has_its_slope_and_a_planted_curve_deviates(tmp_path) -> None:
    drawing, fits = lines_of(tmp_path)
    swift, python = fits.lines
    assert isinstance(swift.fit, LinearFit) and isinstance(python.fit, LinearFit)
    slope = swift.fit.slope
    assert slope.low < SLOPE_US < slope.high and slope.high - slope.low < 4
    assert (swift.title, fits.step, fits.unit) == ("Swift", "client", "µs")
    assert (swift.fit.block_count, swift.fit.level_count) == (4, 4)
    assert not swift.deviates and python.deviates
    assert fits.is_geometric and fits.is_any_fitted and fits.is_any_connected
    assert drawing.x == Axis("clients") and drawing.y == Axis("median latency", "µs", True)
    assert (drawing.chart.x_scale, drawing.chart.y_scale) == (LINEAR, LOG)
    assert (drawing.chart.colours, drawing.chart.colour_title) == (["Swift", "Python"], "language")


def test_points_are_means_over_runs_with_intervals(tmp_path) -> None:
    at = campaign_of(tmp_path, [LINE])
    (figure,) = requested(gather(Campaign(at))).figures
    assert figure.drawing is not None
    means = points_of(figure.drawing, "mean")
    assert len(means) == 2 * len(CLIENTS)
    rows = [json.loads(path.read_text()) for path in at.glob("runs/*/summary.json")]
    values = [
        row["latency_p50_us"]
        for row in rows
        if row["factor.clients"] == 4 and row["factor.language"] == FAST
    ]
    (mean,) = (point for point in means if (point["x"], point["colour"]) == (4, "Swift"))
    assert mean["y"] == pytest.approx(np.exp(np.mean(np.log(values))), rel=1e-3)
    assert mean["runs"] == 4 and mean["low"] < mean["y"] < mean["high"]
    fitted = [point for point in points_of(figure.drawing, "fit") if point["colour"] == "Swift"]
    assert (fitted[0]["x"], fitted[-1]["x"]) == (1, 8)
    assert {point["colour"] for point in points_of(figure.drawing, "path")} == {"Python"}


def test_a_fitted_line_does_not_extend_a_logarithmic_axis_below_the_points(tmp_path) -> None:
    drawing, _ = lines_of(tmp_path, clients=(1, 2, 4, 40))
    lowest = {
        part: min(
            point.get("low", point["y"])
            for point in points_of(drawing, part)
            if point["colour"] == "Python"
        )
        for part in ("mean", "fit")
    }
    assert lowest["fit"] >= lowest["mean"] * 0.999


def test_the_axis_of_a_factor_with_distant_levels_is_logarithmic(tmp_path) -> None:
    drawing, _ = lines_of(tmp_path, clients=(1, 2, 4, 60), blocks=1)
    assert drawing.x.is_log and drawing.chart.x_scale == LOG


def test_a_plain_scale_has_arithmetic_means_and_a_straight_line(tmp_path) -> None:
    drawing, fits = lines_of(tmp_path, {**LINE, "scale": "plain"})
    assert not fits.is_geometric
    assert not drawing.x.is_log and not drawing.y.is_log
    assert drawing.chart.y_scale == LINEAR
    assert len(points_of(drawing, "fit")) == 2 * 2


def test_too_few_blocks_or_levels_have_a_reason_and_connected_points(tmp_path) -> None:
    drawing, fits = lines_of(tmp_path / "blocks", blocks=2)
    assert not fits.is_any_fitted and fits.is_any_connected
    assert len(points_of(drawing, "path")) == 2 * len(CLIENTS)
    assert not any("low" in point for point in drawing.chart.points)
    assert [line.fit for line in fits.lines] == [TooFew(2, 3, "blocks for a line")] * 2
    _, fits = lines_of(tmp_path / "levels", clients=(1, 2))
    assert [line.fit for line in fits.lines] == [TooFew(2, 3, "levels for a line")] * 2


def test_a_treatment_with_lost_messages_has_no_point_and_is_named(tmp_path) -> None:
    def lose(row, levels) -> None:
        if levels == {"language": SLOW, "clients": 8, "interval_s": 0.2} and row["block"] == 1:
            row["latency_p50_us"] = float("inf")

    drawing, fits = lines_of(tmp_path, change=lose)
    python = [point for point in points_of(drawing, "mean") if point["colour"] == "Python"]
    assert [point["x"] for point in python] == [1, 2, 4]
    (excluded,) = fits.excluded
    assert "Python" in excluded.reason and "8" in excluded.reason
    levels = [line.fit.level_count for line in fits.lines if isinstance(line.fit, LinearFit)]
    assert levels == [4, 3]


def test_other_factors_divide_the_figure_into_panels_up_to_a_maximum(tmp_path) -> None:
    by_interval = {**LINE, "by": "interval_s"}
    drawing, fits = lines_of(tmp_path / "two", by_interval, intervals=(0.05, 0.2))
    assert drawing.chart.panels == ["Swift", "Python"]
    assert {point["panel"] for point in drawing.chart.points} == {"Swift", "Python"}
    assert {point["colour"] for point in drawing.chart.points} == {"0.05 s", "0.2 s"}
    assert {line.title for line in fits.lines} == {
        f"{by}, {name}" for by in ("0.05 s", "0.2 s") for name in ("Swift", "Python")
    }
    many = tuple(0.2 + 0.01 * step for step in range(13))
    shape = {"intervals": many, "clients": (1,), "blocks": 1}
    assert obstacle_of(tmp_path / "many", LINE, **shape) == Obstacle("panels", (), 13, 12)


def test_a_response_without_a_comparable_value_is_named(tmp_path) -> None:
    def lose(row, levels) -> None:
        if row["block"] == 1:
            row["latency_p50_us"] = float("inf")

    found = obstacle_of(tmp_path, LINE, change=lose)
    assert found == Obstacle("no value", ("median latency",))
    energy = {**LINE, "response": "energy_uj_per_message"}
    found = obstacle_of(tmp_path / "energy", energy, blocks=1)
    assert found == Obstacle("not measured", ("energy per message",))


def test_an_unmeasured_response_has_its_substitute(tmp_path) -> None:
    spec = {**LINE, "response": "energy_uj_per_message", "instead": "cpu_us_per_message"}
    (figure,) = figures_of(tmp_path, spec, blocks=1)
    assert figure.substitute == Substitute("energy per message", "CPU time per message", True)
    assert figure.drawing is not None and figure.drawing.y.title == "CPU time per message"


def test_segments_are_medians_in_the_given_order(tmp_path) -> None:
    chart = drawing_of(tmp_path, STACKED).chart
    assert chart.panels == ["Swift", "Python"] and list(chart.rows)[0] == "1 client"
    of_swift = [point for point in chart.points if point["panel"] == "Swift"]
    bar = [point for point in of_swift if point["level"] == "4 clients"]
    ordered = sorted(bar, key=lambda point: point["place"])
    assert [(point["colour"], point["value"]) for point in ordered] == [
        ("median latency, hop 1", 14.0), ("median latency, hop 2", 24.0),
        ("median latency, hop 3", 34.0),
    ]  # fmt: skip


def test_segments_without_a_value_are_named_and_other_units_are_refused(tmp_path) -> None:
    def edit(row, levels) -> None:
        if levels["clients"] == 1:
            row[HOPS[2]] = None
        if levels["clients"] == 2 and row["block"] > 1:
            row[HOPS[0]] = float("inf")

    stack = drawing_of(tmp_path / "missing", STACKED, change=edit).stack
    assert stack is not None and stack.has_absent
    assert len(stack.omitted) == 2
    assert stack.omitted[0] == "2 clients Swift median latency, hop 1"
    other = {**STACKED, "responses": ["latency_p50_us", "memory_kib"]}
    assert obstacle_of(tmp_path / "units", other) == Obstacle("units", ("µs", "KiB"))
    nothing = {**STACKED, "responses": ["latency_p50_us.hop.8", "latency_p50_us.hop.9"]}
    assert obstacle_of(tmp_path / "nothing", nothing) == Obstacle(
        "no value", ("median latency, hop 8", "median latency, hop 9")
    )


@pytest.mark.parametrize("kind", ["line", "stacked", "box", "scatter"])
def test_a_figure_shows_only_the_levels_that_it_selects(tmp_path, kind) -> None:
    other = {"title": kind, "kind": kind, "response": "latency_p50_us", "by": "clients"}
    other |= {"against": "cpu_us_per_message"} if kind == "scatter" else {}
    whole = {"line": LINE, "stacked": STACKED}.get(kind, other)
    everything, selected = figures_of(tmp_path, whole, {**whole, "where": {"language": FAST}})
    assert everything.drawing is not None and selected.drawing is not None
    points = json.dumps(everything.drawing.chart.points)
    of_swift = json.dumps(selected.drawing.chart.points)
    assert "Python" in points and "Python" not in of_swift and len(of_swift) > 100
    assert (everything.selection, selected.selection) == ((), ("language Swift",))


def test_the_colour_of_a_scatter_plot_is_of_the_factor_that_is_requested(tmp_path) -> None:
    spec = {"title": "T", "kind": "scatter", "response": "cpu_us_per_message",
            "against": "latency_p50_us", "by": "clients"}  # fmt: skip
    drawing = drawing_of(tmp_path, spec)
    assert {point["colour"] for point in drawing.chart.points} == set(drawing.chart.colours)
    assert drawing.chart.colour_title == "clients" and len(drawing.chart.colours) == 4


FIT = LinearFit(
    Interval(100.0, 90.0, 110.0, 0.95, "t", 4), Interval(5.0, 4.0, 6.0, 0.95, "t", 4),
    LackOfFit(0.5, 2, 6, 0.6), 4, 4,
)  # fmt: skip
CURVE = replace(FIT, lack_of_fit=LackOfFit(50.0, 2, 6, 0.001))
POINTS = [{"part": "mean", "x": 1, "y": 2.0, "runs": 3, "colour": "Swift", "panel": ""}]


def line_figure(*fits, excluded=()) -> RequestedFigure:
    lines = tuple(FittedLine(f"line {place}", fit) for place, fit in enumerate(fits))
    drawing = Drawing(
        Chart(POINTS, ["Swift"], "language", panels=[""], x_scale=LINEAR),
        Axis("clients"),
        Axis("latency", "µs", True),
        Fits(lines, True, excluded, "µs", "client"),
    )
    return RequestedFigure("Latency", "line", drawing)


def parts_of(*figures: RequestedFigure) -> list:
    page = topic_page("requested", Requested(True, True, figures=figures))
    return [part for _, part in page.parts]


def test_a_line_figure_has_its_axes_and_a_sentence_per_line() -> None:
    reasons = (NotComputable("Swift: too much loss"),)
    figure, line, curve, none = parts_of(
        line_figure(FIT, CURVE, TooFew(2, 3, "blocks for a line"), excluded=reasons)
    )
    assert isinstance(figure, Figure) and figure.id == "laid-out-figure-1"
    encoding = figure.spec["layer"][0]["encoding"]
    assert encoding["x"]["title"] == "clients"
    assert encoding["y"]["title"] == "latency (µs, log scale)"
    assert figure.spec["datasets"]["points"] == POINTS
    assert "Points are geometric means" in figure.caption and "look curved" in figure.caption
    assert "Without a point: Swift: too much loss." in figure.caption
    assert "line 0: slope 5.00 [4.00, 6.00] µs per client" in line.words
    assert "No deviation" in line.words and "(lack of fit: F(2, 6) = 0.500, p = 0.60)" in line.words
    assert "slope is an average" in curve.words
    assert none.words == f"line 2: no line was fitted ({TooFew(2, 3, 'blocks for a line')})."
    assert [text.value for text in (line, curve, none)] == ["True", "True", "False"]


def test_sentences_on_many_lines_are_folded() -> None:
    _, fold = parts_of(line_figure(*[FIT] * 5))
    assert isinstance(fold, Fold) and len(fold.parts) == 5
    assert len(parts_of(line_figure(*[FIT] * 4))) == 1 + 4


def test_without_a_fitted_line_the_caption_states_it() -> None:
    figure, _ = parts_of(line_figure(TooFew(2, 3, "blocks for a line")))
    assert "No line was fitted" in figure.caption and "least-squares" not in figure.caption


def test_each_level_of_the_numeric_factor_has_a_tick() -> None:
    levels = [1, 2, 3, 5, 8, 13, 21]
    points = [{**POINTS[0], "x": level} for level in levels]
    whole = line_figure(FIT)
    assert whole.drawing is not None
    chart = replace(whole.drawing.chart, points=points)
    figure, _ = parts_of(replace(whole, result=replace(whole.drawing, chart=chart)))
    axis = figure.spec["layer"][0]["encoding"]["x"]["axis"]
    # Vega omits every second value if there are more values than tickCount.
    assert axis["values"] == levels and axis["tickCount"] == 7


def test_a_caption_states_the_selection_the_substitute_and_the_omitted_segments() -> None:
    point = {"level": "Swift", "colour": "hop 1", "value": 1.0, "place": 0, "runs": 2, "panel": ""}
    drawing = Drawing(
        Chart([point], ["hop 1"], rows=["Swift"], panels=[""], per_row=2),
        Axis("medians", "µs"),
        Axis("language"),
        stack=Stack(True, ("a", "b", "c", "d")),
    )
    substitute = Substitute("energy", "CPU time", True)
    (figure,) = parts_of(
        RequestedFigure("Hops", "stacked", drawing, ("language Swift",), substitute)
    )
    assert figure.title == "CPU time in place of energy: Hops"
    assert "a shorter pipeline lacks. 4 segments without" in figure.caption
    assert "omitted: a, b, c and 1 more. This figure" in figure.caption
    assert "only these levels: language Swift. Energy was not measured" in figure.caption
    assert figure.caption.endswith("CPU time is shown instead, which is not energy.")
    assert figure.spec["encoding"]["y"]["title"] == "language"
    assert figure.spec["encoding"]["x"]["title"] == "medians (µs)"


@pytest.mark.parametrize("kind", ["box", "scatter"])
def test_boxes_and_scatter_plots_have_axes_on_a_logarithmic_scale(kind) -> None:
    point = {"value": 1.0, "x": 1.0, "y": 1.0, "run": "r", "treatment": "t", "colour": "Swift"}
    chart = Chart([point], ["Swift"], "language", panels=[""], per_row=2)
    drawing = Drawing(chart, Axis("energy", "J"), Axis("latency", "µs"), treatments_min=7)
    (figure,) = parts_of(RequestedFigure("T", kind, drawing))
    titles = json.dumps(figure.spec)
    assert ("energy (J), log scale" in titles) == (kind == "box")
    assert ("With 7 or more treatments" in figure.caption) == (kind == "box")
    assert "latency (\\u00b5s)" in titles or kind == "box"


@pytest.mark.parametrize(
    ("kind", "obstacle", "fragment"),
    [
        ("line", Obstacle("not measured", ("energy",)), "T: energy was not measured on"),
        ("box", Obstacle("no pair"), "T: no run has both responses."),
        ("line", Obstacle("no value", ("energy",)), "T: No run has a comparable value of energy."),
        ("stacked", Obstacle("no value", ("a", "b")), "T: No run has a value of a and b."),
        ("stacked", Obstacle("units", ("µs", "1")), "different units (µs and 1)"),
        ("stacked", Obstacle("panels", (), 13, 12), "13 combinations; a figure shows at most 12"),
    ],
)
def test_a_figure_that_cannot_be_drawn_has_its_reason(kind, obstacle, fragment) -> None:
    (text,) = parts_of(RequestedFigure("T", kind, obstacle))
    assert isinstance(text, Text)
    assert (text.key, text.value) == ("requested.obstacle", obstacle.kind)
    assert fragment in text.words
