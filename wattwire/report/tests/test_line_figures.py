"""Tests of line figures and stacked figures, on campaigns with planted lines and curves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from wattwire.analysis.dataset import gather
from wattwire.report.page import build_report
from wattwire.report.parts import Figure, Text, figures_of
from wattwire.report.sections import requested_tables
from wattwire.report.tests.browser import PROGRAM, Browser
from wattwire.report.tests.phrase_search import only, phrases_in
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.store import Campaign

CLIENTS = (1, 2, 4, 8)
HOPS = tuple(f"latency_p50_us.hop.{hop}" for hop in (1, 2, 3))
CHART = '[data-chart="laid-out-figure-{}"] .vega-embed svg'
SLOPE_US, BLOCK_US = 50.0, 30.0
LINE = {"title": "Latency by clients", "kind": "line", "response": "latency_p50_us",
        "x": "clients", "by": "language"}  # fmt: skip
STACKED = {"title": "Hops", "kind": "stacked", "responses": list(HOPS), "by": "clients"}


def planted(levels, block, rng) -> dict[str, float | None]:
    """Return a latency on a line (Swift) or a curve (Python), and medians of three hops."""
    clients, fast = levels["clients"], levels["language"] == FAST
    latency_us = 100.0 + SLOPE_US * clients + BLOCK_US * block + float(rng.normal(0, 4))
    latency_us += 0.0 if fast else 400.0 + 30.0 * (clients - 4) ** 2
    hops = {name: 10.0 * place + clients for place, name in enumerate(HOPS, 1)}
    return {"latency_p50_us": latency_us, **hops}


def campaign_of(folder, figures, change=None, blocks=4, intervals=(0.2,), clients=CLIENTS):
    """Write a campaign whose summaries have planted responses; `change` edits a planted row."""
    shape = Shape(
        blocks=blocks, duration_s=4.0, patterns=("service",), intervals_s=intervals,
        clients=clients, study={"figure": figures},
    )  # fmt: skip
    at = write_campaign(folder / "campaign", shape)
    rng = np.random.default_rng(3)
    for path in sorted(at.glob("runs/*/summary.json")):
        row = json.loads(path.read_text())
        levels = {name: row[f"factor.{name}"] for name in ("language", "clients", "interval_s")}
        row |= planted(levels, row["block"], rng)
        if change:
            change(row, levels)
        path.write_text(json.dumps(row))
    return at


def parts_of(folder, *figures, **shape):
    evidence = gather(Campaign(campaign_of(folder, list(figures), **shape)))
    section = requested_tables.section(evidence)
    assert section is not None
    return section.parts


def points_of(parts, part=None) -> list[dict]:
    (figure,) = figures_of(parts)
    points = figure.spec["datasets"]["points"]
    return [point for point in points if part is None or point["part"] == part]


def test_a_planted_line_has_its_slope_and_a_planted_curve_deviates(tmp_path) -> None:
    figure, *texts = parts_of(tmp_path, LINE)
    assert isinstance(figure, Figure) and figure.id == "laid-out-figure-1"
    swift, python = phrases_in(texts, "line_figure.slope")
    slope = swift.values["slope"]
    assert slope.low < SLOPE_US < slope.high and slope.high - slope.low < 4
    assert (swift.values["line"], swift.values["step"]) == ("Swift", "client")
    assert (swift.values["blocks"], swift.values["levels"]) == (4, 4)
    assert swift.values["lack_of_fit"].key == "line_figure.no_lack_of_fit"
    assert python.values["lack_of_fit"].key == "line_figure.lack_of_fit"
    assert only(figure.caption, "line_figure.geometric")


def test_points_are_means_over_runs_with_intervals(tmp_path) -> None:
    at = campaign_of(tmp_path, [LINE])
    evidence = gather(Campaign(at))
    figure, *_ = requested_tables.section(evidence).parts
    means = points_of([figure], "mean")
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
    fitted = [point for point in points_of([figure], "fit") if point["colour"] == "Swift"]
    assert (fitted[0]["x"], fitted[-1]["x"]) == (1, 8)
    assert {point["colour"] for point in points_of([figure], "path")} == {"Python"}


def test_a_fitted_line_does_not_extend_a_logarithmic_axis_below_the_points(tmp_path) -> None:
    figure, *_ = parts_of(tmp_path, LINE, clients=(1, 2, 4, 40))
    of_python = [point for point in points_of([figure]) if point["colour"] == "Python"]
    lowest = {
        part: min(point.get("low", point["y"]) for point in of_python if point["part"] == part)
        for part in ("mean", "fit")
    }
    assert lowest["fit"] >= lowest["mean"] * 0.999


def test_each_level_of_the_numeric_factor_has_a_tick(tmp_path) -> None:
    figure, *_ = parts_of(tmp_path, LINE, clients=(1, 2, 3, 5, 8, 13, 21), blocks=1)
    axis = figure.spec["layer"][0]["encoding"]["x"]["axis"]
    # Vega omits every second value if there are more values than tickCount.
    assert axis["values"] == [1, 2, 3, 5, 8, 13, 21] and axis["tickCount"] == 7


def test_a_plain_scale_has_arithmetic_means_and_a_straight_line(tmp_path) -> None:
    figure, *_ = parts_of(tmp_path, {**LINE, "scale": "plain"})
    assert only(figure.caption, "line_figure.arithmetic")
    assert phrases_in(figure.caption, "line_figure.curved") == []
    assert len(points_of([figure], "fit")) == 2 * 2
    assert "log" not in json.dumps(figure.spec["layer"])


def test_too_few_blocks_or_levels_have_a_reason_and_connected_points(tmp_path) -> None:
    figure, *texts = parts_of(tmp_path / "blocks", LINE, blocks=2)
    assert only(figure.caption, "line_figure.not_fitted")
    assert len(points_of([figure], "path")) == 2 * len(CLIENTS)
    assert not any("low" in point for point in points_of([figure]))
    reasons = [phrase.values["reason"] for phrase in phrases_in(texts, "line_figure.no_fit")]
    assert reasons == ["there are only 2 blocks for a line, and at least 3 are needed"] * 2
    _, *texts = parts_of(tmp_path / "levels", LINE, clients=(1, 2))
    reasons = [phrase.values["reason"] for phrase in phrases_in(texts, "line_figure.no_fit")]
    assert reasons == ["there are only 2 levels for a line, and at least 3 are needed"] * 2


def test_a_treatment_with_lost_messages_has_no_point_and_is_named(tmp_path) -> None:
    def lose(row, levels) -> None:
        if levels == {"language": SLOW, "clients": 8, "interval_s": 0.2} and row["block"] == 1:
            row["latency_p50_us"] = float("inf")

    figure, *texts = parts_of(tmp_path, LINE, change=lose)
    python = [point for point in points_of([figure], "mean") if point["colour"] == "Python"]
    assert [point["x"] for point in python] == [1, 2, 4]
    (reason,) = only(figure.caption, "line_figure.excluded").values["reasons"]
    assert "Python" in reason and "8" in reason
    assert [phrase.values["levels"] for phrase in phrases_in(texts, "line_figure.slope")] == [4, 3]


def test_other_factors_divide_the_figure_into_panels_up_to_a_maximum(tmp_path) -> None:
    figure, *texts = parts_of(tmp_path / "two", {**LINE, "by": "interval_s"}, intervals=(0.05, 0.2))
    assert {point["panel"] for point in points_of([figure])} == {"Swift", "Python"}
    assert {point["colour"] for point in points_of([figure])} == {"0.05 s", "0.2 s"}
    panels = {phrase.values["line"] for phrase in phrases_in(texts, "line_figure.slope")}
    assert panels == {f"{by}, {name}" for by in ("0.05 s", "0.2 s") for name in ("Swift", "Python")}
    many = tuple(0.2 + 0.01 * step for step in range(13))
    parts = parts_of(tmp_path / "many", LINE, intervals=many, clients=(1,), blocks=1)
    assert isinstance(parts[0], Text)
    assert only(parts, "panels.too_many").values == {"panels": 13, "most": 12}


def test_segments_are_medians_in_the_given_order(tmp_path) -> None:
    (figure,) = parts_of(tmp_path, STACKED)
    points = points_of([figure])
    assert {point["panel"] for point in points} == {"Swift", "Python"}
    bar = [point for point in points if (point["level"], point["panel"]) == ("4 clients", "Swift")]
    ordered = sorted(bar, key=lambda point: point["place"])
    assert [(point["colour"], point["value"]) for point in ordered] == [
        ("median latency, hop 1", 14.0), ("median latency, hop 2", 24.0),
        ("median latency, hop 3", 34.0),
    ]  # fmt: skip


def test_segments_without_a_value_are_explained_and_other_units_are_refused(tmp_path) -> None:
    def edit(row, levels) -> None:
        if levels["clients"] == 1:
            row[HOPS[2]] = None
        if levels["clients"] == 2 and row["block"] > 1:
            row[HOPS[0]] = float("inf")

    (figure,) = parts_of(tmp_path / "missing", STACKED, change=edit)
    assert only(figure.caption, "stacked_figure.absent")
    omitted = only(figure.caption, "stacked_figure.incomplete").values
    assert omitted["segments"] == 2
    assert omitted["names"].startswith("2 clients Swift median latency, hop 1")
    other = {**STACKED, "responses": ["latency_p50_us", "memory_kib"]}
    (text,) = parts_of(tmp_path / "units", other)
    assert only(text, "stacked_figure.units").values["units"] == ["µs", "KiB"]
    nothing = {**STACKED, "responses": ["latency_p50_us.hop.8", "latency_p50_us.hop.9"]}
    (text,) = parts_of(tmp_path / "nothing", nothing)
    assert only(text, "stacked_figure.no_value")


@pytest.mark.parametrize("kind", ["line", "stacked", "box", "scatter"])
def test_a_figure_shows_only_the_levels_that_it_selects(tmp_path, kind) -> None:
    other = {"title": kind, "kind": kind, "response": "latency_p50_us", "by": "clients"}
    other |= {"against": "cpu_us_per_message"} if kind == "scatter" else {}
    whole = {"line": LINE, "stacked": STACKED}.get(kind, other)
    selected = {**whole, "where": {"language": FAST}}
    parts = parts_of(tmp_path, whole, selected)
    everything, only_swift = (
        json.dumps(figure.spec["datasets"]) for figure in parts if isinstance(figure, Figure)
    )
    assert "Python" in everything and "Python" not in only_swift and len(only_swift) > 100
    captions = [str(figure.caption) for figure in parts if isinstance(figure, Figure)]
    assert ["language Swift" in caption for caption in captions] == [False, True]


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    return build_report(Campaign(campaign_of(folder, [LINE, STACKED])), printed=True)


def test_a_page_has_both_figures_with_their_sentences_and_files(page) -> None:
    text = page.read_text("utf-8")
    assert "Latency by clients" in text and "Hops" in text
    assert "Swift: slope 5" in text and "µs per client" in text
    line, stacked = (
        (page.parent / f"figures/laid-out-figure-{number}.svg").read_text("utf-8")
        for number in (1, 2)
    )
    assert ">medians (µs)<" in stacked
    assert "median latency (µs, log scale)" in line and ">clients<" in line
    assert all(f">median latency, hop {place}<" in stacked for place in (1, 2, 3))


@pytest.mark.browser
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome on PATH")
def test_a_browser_draws_every_point_interval_line_and_segment(page, tmp_path) -> None:
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page)
        for number in (1, 2):
            browser.until(f"document.querySelector('{CHART.format(number)}') !== null")
        counts = {
            kind: browser.value(
                f"document.querySelectorAll('{CHART.format(number)} .mark-{kind}.role-mark > *')"
                ".length"
            )
            for number, kind in ((1, "symbol"), (1, "rule"), (1, "line"), (2, "rect"))
        }
        assert browser.said == []
    finally:
        browser.close()
    # Python's points deviate from its line, so a third line connects them.
    assert counts == {"symbol": 8, "rule": 8, "line": 3, "rect": 24}
