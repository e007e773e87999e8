"""Tests of pages whose columns or levels have names that break JavaScript or SVG."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.cli.main import main
from wattwire.report.figures.letters import drawable
from wattwire.report.page import build_report
from wattwire.report.parts import Figure
from wattwire.report.print import render, render_worker
from wattwire.report.tests.browser import PROGRAM, Browser

LEVELS = ("constructor", "toString", "__proto__", "a\u2028b", "a\x01b", "${x}", "</script>", "\x7f")
KINDS = ("box", "violin", "ecdf", "interaction", "scatter", "heat", "order")


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    rows = [
        f"{level},{other},{1 + at + block / 10},{2 + at + block / 7},{block}"
        for block in range(3)
        for at, level in enumerate(LEVELS)
        for other in ("hasOwnProperty", "valueOf")
    ]
    header = "constructor,valueOf,toString,isPrototypeOf,day"
    (folder / "t.csv").write_text("\n".join([header, *rows]) + "\n", "utf-8", newline="\n")
    campaign = folder / "campaign"
    words = ("--factor", "constructor", "--factor", "valueOf", "--block", "day",
             "--response", "toString:\u2029", "--response", "isPrototypeOf")  # fmt: skip
    assert main(["import", "csv", str(folder / "t.csv"), *words, "--campaign", str(campaign)]) == 0
    return build_report(campaign, printed=True)


def test_every_figure_of_oddly_named_levels_and_columns_is_drawn(page) -> None:
    assert "could not be drawn" not in page.read_text("utf-8")
    drawn = list((page.parent / "figures").glob("*.svg"))
    assert len(drawn) >= 5
    for svg in drawn:
        assert svg.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    together = "".join(svg.read_text("utf-8") for svg in drawn)
    for name in (">constructor<", "a[U+0001]b", "a[U+2028]b", "__proto__", "[U+007F]"):
        assert name in together, name


@pytest.mark.browser
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome on PATH")
def test_a_browser_draws_every_chart_and_every_kind_of_the_explorer(page, tmp_path) -> None:
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page)
        charts = "[...document.querySelectorAll('[data-chart]')]"
        browser.until(f"{charts}.every((chart) => chart.querySelector('.vega-embed svg'))")
        for kind in KINDS:
            for tone, panel in (("0", "1"), ("1", "")):
                browser.pick("#choose-kind", kind)
                browser.pick("#choose-tone", tone)
                browser.value("document.querySelector('#explorer-chart').replaceChildren()")
                browser.pick("#choose-panel", panel)
                browser.until("document.querySelector('#explorer-chart svg') !== null")
        assert not browser.said, browser.said[0][:300]
    finally:
        browser.close()


def test_a_figure_that_cannot_be_drawn_costs_no_other(tmp_path, monkeypatch) -> None:
    spec = {"data": {"values": [{"a": 1}]}, "mark": "point"}
    with render.Drawer(tmp_path) as drawer:
        drawer.begin([Figure("good", "", "", spec), Figure("bad", "", "", {"mark": 5})])
        assert set(drawer.pictures()) == {"good"}
    assert "bad" in drawer.failed["bad"] and "\n" not in drawer.failed["bad"]
    assert {path.name for path in tmp_path.iterdir()} == {"good.svg", "good.pdf"}
    crash = {**spec, "title": "a\x01b"}
    with render.Drawer(tmp_path) as drawer:
        drawer.begin([Figure("ends", "", "", crash), Figure("good", "", "", spec)])
        assert set(drawer.pictures()) == {"good"}
    assert "crashed twice" in drawer.failed["ends"]


def test_a_page_names_the_figure_that_could_not_be_drawn(page, monkeypatch) -> None:
    real = render_worker.Pen.draw

    def refuse(self, spec, svg, pdf, mark):
        if svg.stem == "ratios":
            raise ValueError("ratios: no reason\n    at a stack")
        return real(self, spec, svg, pdf, mark)

    monkeypatch.setattr(render_worker.Pen, "draw", refuse)
    for path in (page.parent / "figures").glob("ratios.*"):
        path.unlink()
    text = build_report(page.parents[1], printed=True).read_text("utf-8")
    assert text.count("could not be drawn") == 1
    assert "Reason: ratios: no reason<" in text
    assert 'data-chart="ratios"' not in text and "figures/ratios.svg" not in text
    assert not (page.parent / "figures" / "ratios.svg").exists()


def test_a_word_is_drawable_or_told_by_its_number() -> None:
    assert drawable("plain é 🤖 אב\n") == "plain é 🤖 אב\n"
    assert drawable("a\ud800") == "a[U+D800]"
    assert drawable("valueOf") == "valueOf\u00a0"
