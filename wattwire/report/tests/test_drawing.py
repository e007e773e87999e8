"""Tests of print sizes, font sizes and embedded fonts of figures in files."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from wattwire.analysis.charts import Chart
from wattwire.model.errors import WattwireError
from wattwire.report.figures import fitting
from wattwire.report.figures.curves import ecdf_chart, sizes_chart
from wattwire.report.figures.effects import interaction_chart, ratios_chart
from wattwire.report.figures.relations import heat_chart, scatter_chart
from wattwire.report.figures.runs import (
    box_chart,
    order_chart,
    runs_chart,
    runs_ecdf_chart,
    violin_chart,
)
from wattwire.report.html import vega_bundle
from wattwire.report.parts import Figure
from wattwire.report.print import render, render_worker

LEVELS = ["C++", "Python"]
INTERVALS = ["0.05 s", "0.25 s", "1 s"]
PANELS = ["topic", "service", "action"]
TITLE = "CPU time per message (µs, log scale)"


def points(runs: int = 24) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    found = []
    for block in range(runs):
        for level in LEVELS:
            for interval in INTERVALS:
                for panel in PANELS:
                    value = float(np.exp(rng.normal(3, 0.2))) * (3 if level == "Python" else 1)
                    found.append(
                        {
                            "value": value, "x": value, "y": 2 * value, "us": value,
                            "bytes": 64, "share": 0.5, "centre": 20.0, "colour": level,
                            "across": interval, "down": level, "panel": panel,
                            "order": len(found) + 1, "edge": 18 * block + 0.5, "run": "r",
                            "treatment": f"{level} {interval} {panel}",
                            "used": "excluded" if len(found) % 9 == 0 else "valid",
                        }
                    )  # fmt: skip
    return found


def ratios(count: int) -> list[dict[str, Any]]:
    return [
        {
            "name": f"a rather long level {n} / its baseline", "response": TITLE,
            "one": 1 if n == 0 else None, "ratio": 0.5, "low": 0.4, "high": 0.6,
            "margin_low": 0.95, "margin_high": 1.05,
        }
        for n in range(count)
    ]  # fmt: skip


def charts(runs: int = 24) -> dict[str, Any]:
    made = points(runs)
    chart = Chart(made, LEVELS, "language", panels=PANELS, per_row=3, across=INTERVALS)
    return {
        "ecdf": ecdf_chart(chart),
        "sizes": sizes_chart(chart),
        "runs": runs_chart(chart, TITLE),
        "box": box_chart(chart, TITLE),
        "violin": violin_chart(chart, TITLE),
        "runs-ecdf": runs_ecdf_chart(chart, TITLE),
        "order": order_chart(chart, "", TITLE),
        "ratios": ratios_chart(Chart(ratios(4))),
        "interaction": interaction_chart(chart, "interval", TITLE),
        "scatter": scatter_chart(chart, TITLE, "memory (KiB, log scale)"),
        "heat": heat_chart(chart, "interval", TITLE),
    }


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("figures")
    with render.Drawer(folder) as drawer:
        drawer.begin([Figure(name, name, "", spec) for name, spec in charts().items()])
        pictures = drawer.pictures()
    return folder, pictures


def test_every_chart_fills_a_column_of_print_with_letters_of_seven_points_or_more(drawn) -> None:
    folder, pictures = drawn
    assert len(pictures) == 11
    for name, picture in pictures.items():
        wide_px, high_px = render_worker.size_px(picture)
        text = (folder / f"{name}.svg").read_text("utf-8")
        found = re.search(r'width="([\d.]+)mm" height="([\d.]+)mm" viewBox="0 0 ([\d.]+)', text)
        assert found, name
        wide_mm, high_mm = float(found[1]), float(found[2])
        assert wide_mm in render_worker.COLUMN_MM, name
        assert high_mm / wide_mm == pytest.approx(high_px / wide_px, rel=0.01), name
        sizes_px = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', text)]
        points_per_px = wide_mm / 25.4 * 72 / wide_px
        assert min(sizes_px) * points_per_px >= 7.0, (name, wide_px)
        assert max(sizes_px) * points_per_px <= 11.0, (name, wide_px)


def test_a_pdf_has_the_same_size_and_carries_its_fonts(drawn) -> None:
    folder, pictures = drawn
    for name, picture in pictures.items():
        document = (folder / f"{name}.pdf").read_bytes()
        box = re.search(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", document)
        assert box, name
        assert float(box[1]) == pytest.approx(render_worker.width_mm(picture) / 25.4 * 72, abs=0.1)
        assert document.count(b"/FontFile") >= 1, name
        assert not re.search(rb"/BaseFont ?/(?!\w{6}\+)", document), f"{name}: a font is missing"


def test_figures_are_drawn_anew_where_their_points_differ_and_only_there(tmp_path) -> None:
    def draw(specs: dict[str, Any]) -> dict[str, str]:
        with render.Drawer(tmp_path) as drawer:
            drawer.begin([Figure(name, name, "", spec) for name, spec in specs.items()])
            return drawer.pictures()

    one, other = (ratios_chart(Chart(ratios(count))) for count in (2, 3))
    first = draw({"a": one, "b": one})
    (tmp_path / "a.pdf").write_bytes(b"kept")
    (tmp_path / "b.pdf").write_bytes(b"replaced")
    again = draw({"a": one, "b": other})
    assert again["a"] == first["a"] and again["b"] != first["b"]
    assert (tmp_path / "a.pdf").read_bytes() == b"kept"
    assert (tmp_path / "b.pdf").read_bytes().startswith(b"%PDF")
    (tmp_path / "a.pdf").unlink()
    assert draw({"a": one}) == {"a": first["a"]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "a.svg"]


def test_a_damaged_library_in_the_cache_is_made_anew(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path))
    made = vega_bundle.for_pages()
    assert "vegaEmbed" in made and "</script" not in made
    (kept,) = (tmp_path / "blobs").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1000])
    monkeypatch.setattr(vega_bundle, "_bundle", lambda: made)
    assert vega_bundle.for_pages() == made
    assert kept.read_bytes() == whole
    monkeypatch.setattr(vega_bundle, "_bundle", lambda: "another")
    assert vega_bundle.for_pages() == made


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(vega_bundle, "_bundle", lambda: "made")
    assert vega_bundle.for_pages() == "made"


def test_a_narrow_chart_goes_into_one_column() -> None:
    assert (
        render_worker.width_mm('<svg class="marks" width="390" height="100" viewBox="0 0 390 100">')
        == 84
    )
    assert (
        render_worker.width_mm('<svg class="marks" width="401" height="100" viewBox="0 0 401 100">')
        == 174
    )
    with pytest.raises(ValueError, match="no width"):
        render_worker.size_px("<svg>")


def test_writing_marks_once_changes_no_pixel() -> None:
    svg = vl_convert.vegalite_to_svg(charts()["order"])
    small = render_worker.small(svg)
    assert len(small) < len(svg) / 2
    assert vl_convert.svg_to_png(small) == vl_convert.svg_to_png(svg)


def marks(spec: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the marks of a kind that a chart draws for its data. A trail is a single mark."""
    scene = vl_convert.vega_to_scenegraph(vl_convert.vegalite_to_vega(spec))

    def found(part: Any) -> list[dict[str, Any]]:
        if isinstance(part, list):
            return [mark for each in part for mark in found(each)]
        if not isinstance(part, dict):
            return []
        drawn = part.get("items") or []
        mine = part.get("marktype") == kind and part.get("role") == "mark"
        here = (drawn[:1] if kind == "trail" else drawn) if mine else []
        return here + [mark for value in part.values() for mark in found(value)]

    return found(scene)


def test_boxes_and_violins_wait_for_enough_runs() -> None:
    few, some, many = (charts(runs) for runs in (1, 2, 24))
    # A group has three intervals per run: 3, 6 and 72 points. Six groups are in three panels.
    assert len(marks(few["box"], "rect")) == 0
    assert len(marks(some["box"], "rect")) == 12  # a box and a median each
    assert len(marks(some["violin"], "trail")) == 0
    assert len(marks(many["violin"], "trail")) == 6


def test_an_interaction_has_t_intervals_from_three_runs_on() -> None:
    assert marks(charts(2)["interaction"], "rule") == []
    logs = np.log([10.0, 11.0, 13.0])
    groups = {"x": np.exp(logs), "one": [1.0], "hundred": [100.0, 100.0]}
    made = [
        {"value": float(value), "colour": "a", "across": name, "panel": ""}
        for name, values in groups.items()
        for value in values
    ]
    spec = interaction_chart(Chart(made, ["a"], "c", across=list(groups)), "f", TITLE)
    symbols, (rule,) = marks(spec, "symbol"), marks(spec, "rule")
    middle_px, one_px, hundred_px = (each["y"] for each in sorted(symbols, key=lambda m: m["x"]))
    per_px = np.log(100.0) / (one_px - hundred_px)
    ends = sorted((one_px - rule[name]) * per_px for name in ("y", "y2"))
    half = 4.302653 * logs.std(ddof=1) / np.sqrt(3)
    assert (one_px - middle_px) * per_px == pytest.approx(logs.mean(), abs=0.01)
    assert ends == pytest.approx([logs.mean() - half, logs.mean() + half], abs=0.01)


def test_many_levels_do_not_run_into_each_other() -> None:
    svg = vl_convert.vegalite_to_svg(ratios_chart(Chart(ratios(90))))
    rows = re.findall(r'text-anchor="end" transform="translate\(-7,([\d.]+)\)"', svg)
    assert len(rows) == 90
    assert min(np.diff(sorted(float(row) for row in rows))) >= 12


@given(st.floats(1e-6, 1e6), st.floats(1.5, 1e6), st.floats(2.0, 30.0))
def test_ticks_of_a_log_axis_lie_inside_it_and_have_room(low, ratio, room) -> None:
    ticks = fitting.log_ticks(low, low * ratio, room)
    assert all(low <= tick <= low * ratio for tick in ticks)
    decades = math.log10(ratio)
    gaps = np.diff(np.log10(ticks)) / decades * room if ticks else np.array([])
    assert not ticks or (len(ticks) >= fitting.TICKS_MIN and gaps.min() > 0.75)


WORD = st.text("abcdefg", min_size=1, max_size=12)


@given(st.lists(WORD, min_size=1, max_size=8), st.integers(60, 800))
def test_a_title_in_lines_keeps_its_words(words, room_px) -> None:
    title = " ".join(words) + " (µs, log scale)"
    lines = fitting.wrapped(title, room_px)
    assert " ".join(lines) == title
    assert lines[-1].endswith("(µs, log scale)")


def test_who_draws_says_what_went_wrong_and_goes_on(tmp_path) -> None:
    mine = render_worker.Pen()
    svg, pdf = tmp_path / "a.svg", tmp_path / "a.pdf"
    with pytest.raises(ValueError, match=r"^a: "):
        mine.draw({"mark": 5}, svg, pdf, "")
    nowhere = tmp_path / "no" / "a.svg"
    with pytest.raises(FileNotFoundError) as missing:
        mine.draw(render_worker.NOTHING, nowhere, pdf, "")
    assert missing.value.filename == str(nowhere)
    assert mine.draw(render_worker.NOTHING, svg, pdf, "<!-- m -->").startswith("<svg")
    assert svg.read_text().endswith("<!-- m -->") and pdf.read_bytes().startswith(b"%PDF")
    mine._process.kill()
    with pytest.raises(WattwireError, match=r"exit code -9.* repeat the same command"):
        mine.draw(render_worker.NOTHING, svg, pdf, "")
    assert not mine.is_alive


def test_files_are_found_from_where_it_is_asked_and_not_from_where_it_was_started(
    tmp_path, monkeypatch
) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "json.py").write_text("raise SystemExit('a module of the user')")
    monkeypatch.chdir(begun)
    mine = render_worker.Pen()
    monkeypatch.chdir(tmp_path)
    mine.draw(render_worker.NOTHING, Path("a.svg"), Path("a.pdf"), "")
    assert {path.name for path in tmp_path.iterdir()} == {"a.svg", "a.pdf", "begun"}


def test_who_draws_ends_with_who_asks_however_that_ends() -> None:
    code = (
        "import os\n"
        "from wattwire.report.print import render_worker\n"
        "worker = render_worker.shared()\n"
        "assert render_worker.shared() is worker\n"
        "print(worker._process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 60.0
    while Path(f"/proc/{done.stdout.strip()}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ticks_reach_as_far_as_the_bars_do() -> None:
    ends = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}
    places = {"x": {"field": "ratio", "scale": {"type": "log"}, "axis": {}}}
    chart = {"width": 500, "layer": [{"encoding": ends}, {"encoding": places}]}
    chart["encoding"] = places
    fitting.fit(chart, [{"ratio": 1.0, "low": 0.1, "high": 100.0}, {"ratio": 3.0}])
    values = places["x"]["axis"]["values"]
    assert min(values) == 0.1 and max(values) == 100.0


def test_ticks_of_an_axis_longer_than_all_floats_apart_are_found() -> None:
    ticks = fitting.log_ticks(1e-320, 2.0, 10.0)
    assert len(ticks) >= 3 and all(1e-320 <= tick <= 2.0 for tick in ticks)
